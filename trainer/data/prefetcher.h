// Batches read ahead by threads, handed out in order.
#pragma once

#include <cstdint>
#include <memory>

#include "trainer/data/dataset.h"

namespace tern::trainer {

/// Which training samples one rank takes: `micro` per pass, `accumulation` passes per step of `train`
/// samples. Rank r's samples of a step are the r-th of n_ranks contiguous parts of [step * train, (step + 1)
/// * train).
struct Shard {
  int rank = 0;
  int n_ranks = 1;
  int64_t train = 1;
  int64_t micro = 1;
  int64_t accumulation = 1;

  /// First sample of pass `pass` of the step that starts at sample `step_begin`.
  uint64_t first_sample(uint64_t step_begin, int64_t pass) const {
    return step_begin + static_cast<uint64_t>(rank * (train / n_ranks) + pass * micro);
  }
};

/// Reads this rank's micro-batches in order, `depth` ahead, on `n_threads` threads that sleep when the queue
/// is full. The order handed out does not depend on the threads.
///
/// Threads: next() from one thread at a time. The dataset must outlive it.
class Prefetcher {
 public:
  /// first_step_begin: global sample index of the first step to read.
  Prefetcher(const Dataset& dataset, const Shard& shard, uint64_t first_step_begin, int n_threads);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// The next micro-batch; valid until the next call.
  const TokenBatch& next();

 private:
  struct Queue;
  std::unique_ptr<Queue> queue_;
};

}  // namespace tern::trainer
