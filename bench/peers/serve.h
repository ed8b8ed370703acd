// The far side of compare: a rank of some library that runs batches of calls when asked, and sleeps in read()
// otherwise.
//
// Lines over a Unix socket. The rank says "hello RANK SIZE NAME VERSION"; then for every
//   run COLLECTIVE COUNT MEMORY WARMUP ITERS
// it answers "SECONDS WRONG" (per call of the timed batch; elements wrong in the last call), "no REASON" when
// the library does not have it, or "error REASON"; "quit" ends it.
#pragma once

#include <cstdlib>
#include <memory>
#include <span>
#include <string>

#include "bench/peers/exercise.h"

namespace tern::bench {

/// A library's communicator, as compare sees it. Every rank makes the same calls in the same order.
class PeerLibrary {
 public:
  virtual ~PeerLibrary() = default;
  virtual std::string name() const = 0;
  virtual std::string version() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Memory for a buffer, 64-byte aligned, until the next call with the same `slot` (0 or 1). `shared`: from
  /// the library's own allocator where it has one.
  virtual Result<std::span<float>> buffer(int slot, size_t n, bool shared) = 0;
  virtual Status barrier() = 0;
  /// Errors: kUnsupported when the library has no such collective.
  virtual Status call(const ExerciseShape& shape, std::span<const float> send, std::span<float> recv) = 0;
};

/// Plain memory for two slots: PeerLibrary::buffer of libraries without an allocator.
class PlainBuffers {
 public:
  Result<std::span<float>> get(int slot, size_t n);

 private:
  struct Free {
    void operator()(float* memory) const {
      std::free(memory);
    }  // NOLINT(cppcoreguidelines-no-malloc): its owner
  };
  std::unique_ptr<float, Free> memory_[2];
  size_t n_bytes_[2] = {};
};

/// Connects to compare's socket and serves until "quit". Errors: kIo, kPeerLost when compare is gone.
Status serve(PeerLibrary& library, const std::string& socket_path);

/// What a peer's main() returns; says on stderr what was wrong.
int exit_status(std::string_view library, const Status& status);

}  // namespace tern::bench
