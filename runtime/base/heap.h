// Memory that the other ranks of the node can map: what tern::allocate hands out.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/base/status.h"

namespace tern {

/// A reserved range of memory backed by a memfd, so that peers of the same node can map it and read it in
/// place. Pages cost nothing until touched. A memfd leaves nothing behind when its process is killed and is
/// not bounded by the size of /dev/shm.
///
/// Threads: allocate() and free() may be called from any thread.
class Heap {
 public:
  /// Reserves `n_bytes` (rounded up to pages). Errors: kIo, kOutOfMemory with the size asked for.
  static Result<std::unique_ptr<Heap>> create(size_t n_bytes);
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// 64-byte aligned memory. Errors: kOutOfMemory saying what was asked, what is free and the setting to
  /// raise.
  Result<void*> allocate(size_t n_bytes);
  void free(void* memory);

  bool contains(const void* memory, size_t n_bytes) const;
  const std::byte* base() const;
  size_t size() const;
  int fd() const;  ///< the memfd; peers open /proc/<pid>/fd/<fd>

 private:
  Heap();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tern
