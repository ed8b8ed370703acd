// The memory that a perf program measures on, fenced so that a write outside the result is seen.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/communicator/communicator.h"

namespace tern::bench {

/// One buffer of a rank: shared (tern::allocate) or plain memory, 64-byte aligned plus an offset asked for.
class PerfBuffer {
 public:
  struct Shape {
    size_t n_bytes = 0;  ///< most bytes that a row uses
    size_t offset = 0;   ///< bytes by which data() misses its alignment
    bool shared = true;
  };
  /// Errors: kOutOfMemory.
  static Result<PerfBuffer> create(Communicator& comm, const Shape& shape);

  std::byte* data() { return start_ + kFence; }
  /// Writes the fences before and after the first n_bytes.
  void raise_fences(size_t n_bytes);
  /// Fence bytes that changed since raise_fences(n_bytes).
  size_t broken_fence_bytes(size_t n_bytes) const;

 private:
  static constexpr size_t kFence = 64;
  Allocation shared_;
  std::vector<std::byte> plain_;
  std::byte* start_ = nullptr;
};

}  // namespace tern::bench
