// MPI as a launcher: it tells rank and size and hands one text around. Never a data path.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/status.h"

namespace tern {

/// Initialises MPI unless the program did; then also finalises it, in the destructor.
///
/// Threads: create and destroy it in one thread at a time.
class MpiSession {
 public:
  /// Errors: kUnsupported (built without MPI), kIo (MPI refuses).
  static Result<std::unique_ptr<MpiSession>> create();
  /// All ranks finalise together; after a failure the others would be waited for in vain, hence abandon().
  ~MpiSession();

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Rank 0's text, on every rank. Collective. Errors: kIo.
  Result<std::string> broadcast(std::string text);
  /// The destructor leaves MPI as it is.
  void abandon() { owns_mpi_ = false; }

 private:
  MpiSession() = default;
  int rank_ = 0;
  int size_ = 1;
  bool owns_mpi_ = false;
};

}  // namespace tern
