// Runs programs over a transport: segments in a software pipeline, fused operations, adaptive waiting.
//
// Time slot t runs round r of segment s for all r + s = t. In a slot: receives are posted, chunks encoded and
// sent, the former slot's sends are awaited, then the slot's operations finish in order. Both ends of a pair
// walk the same (slot, segment, round) order, so messages need no tags.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/dtype.h"
#include "runtime/base/heap.h"
#include "runtime/codec/encoding_error.h"
#include "runtime/exec/accuser.h"
#include "runtime/exec/layout.h"
#include "runtime/exec/program.h"
#include "runtime/exec/signature.h"
#include "runtime/transport/transport.h"

namespace tern {

/// How long a wait polls, and yields, before it sleeps.
struct WaitPolicy {
  Clock::duration spin{};   ///< zero where ranks outnumber cores: the peer waited for needs this core
  Clock::duration yield{};  ///< sched_yield between polls; then futex or event
};

struct Call {
  const Program* program = nullptr;
  Signature signature;
  Chunks chunks;
  const void* in = nullptr;
  void* out = nullptr;
  size_t segment = 0;           ///< elements of a chunk; 0: not cut
  float* residual = nullptr;    ///< of the whole vector; null: none
  bool measures_error = false;  ///< of what is encoded here
  WireTag tag;                  ///< step and bucket
  Seconds timeout{0};           ///< what `deadline` was made of, for messages
  Deadline deadline;
};

/// What one call moved.
struct CallCounters {
  size_t bytes_on_wire = 0;
  bool non_finite = false;
  uint32_t n_saturated = 0;
  EncodingError error;  ///< where the call measures it
};

/// Executes one call at a time on the calling thread. No allocation once its buffers have grown to a call's
/// shape.
///
/// Threads: one at a time. After an error the transport is aborted and every further run() fails.
class Executor {
 public:
  /// What is referred to outlives the executor.
  struct Setup {
    Transport& transport;
    Heap& heap;        ///< scratch and encoded chunks lie in it, so that peers read them in place
    Accuser& accuser;  ///< asked when a wait runs out of time
    WaitPolicy policy;
  };
  /// members: world rank of each rank of the plans.
  Executor(const Setup& setup, std::vector<int> members);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Errors: kPeerLost, kTimeout, kAborted, kMismatch, kCorrupt (an encoded message is not what it must be),
  ///         kOutOfMemory (scratch).
  Status run(const Call& call, CallCounters& counters);

 private:
  class Run;
  struct Memory;
  Transport& transport_;
  Accuser& accuser_;
  std::vector<int> members_;
  WaitPolicy policy_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace tern
