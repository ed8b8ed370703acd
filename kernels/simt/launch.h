// Runs a CUDA kernel body on the CPU, all threads of a block in turns, and stops at what a GPU would leave
// undefined.
//
// The body is ordinary C++ that uses the words of kernels/simt/words.h (threadIdx, __shfl_xor_sync,
// __syncthreads, Global<T>, Shared<T, N>, ...), which have CUDA's names and meaning. A thread runs until it
// has to wait for others; who runs next is the schedule's choice, so a result that depends on the order
// differs between schedules.
#pragma once

#include <functional>

#include "kernels/simt/memory.h"
#include "kernels/simt/shape.h"
#include "runtime/base/status.h"

namespace tern::simt {

struct Launch {
  Shape shape;
  Memory* memory = nullptr;  ///< what the kernel may touch besides shared memory
  /// The schedule. 0: blocks and threads in ascending order; 1: descending; others: shuffled, and threads
  /// also pause at some memory accesses.
  uint64_t seed = 0;
};

/// Calls body() once per thread.
///
/// Threads: one launch at a time per OS thread. Not from within a body.
/// Errors:  kInternal, naming the thread, the source line and the reason, when a thread
///          - waits at a barrier that others of its block wait at elsewhere or never reach,
///          - calls a warp function with a mask that leaves itself out or names a lane that has exited, does
///            not exist, or waits elsewhere or with another mask, or shuffles from a lane outside of the
///            mask,
///          - touches memory outside of its buffers, misaligned, or writes an input,
///          - reads shared memory that nobody wrote, or races with another thread (see Range).
///          What the kernel wrote until then stays.
Status run(const Launch& launch, const std::function<void()>& body);

}  // namespace tern::simt
