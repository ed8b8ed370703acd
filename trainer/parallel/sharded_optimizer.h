// AdamW on the parameters that this rank owns, and the updated parameters back to every rank.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/communicator/communicator.h"
#include "trainer/kernels/adamw.h"
#include "trainer/kernels/team.h"
#include "trainer/parallel/bucket_plan.h"
#include "trainer/parallel/pending_calls.h"

namespace tern::trainer {

/// A run of the flat buffer whose moments this rank holds.
struct OwnedRange {
  int64_t begin = 0;  ///< flat element
  int64_t end = 0;
  int64_t state_begin = 0;  ///< of its first element in the moment vectors

  int64_t size() const { return end - begin; }
};

/// The ranges that `rank` owns, ascending: its shard of every bucket (stage 2), or everything (stage 0).
std::vector<OwnedRange> owned_ranges(const BucketPlan& plan, int stage, int rank);

/// Memory: 8 bytes per owned element (two moments).
/// Threads: one.
class ShardedOptimizer {
 public:
  /// `comm`, `plan` must outlive it.
  ShardedOptimizer(Communicator& comm, const BucketPlan& plan, int stage);

  /// Sum of squares of the owned gradients, fp64, in a fixed order. Stage 0: of all gradients.
  double sum_of_squares(Team& team, std::span<const float> gradients) const;

  /// Updates the owned part of `params` and, in stage 2, starts the gathering of each bucket as soon as its
  /// shard is updated; finish() waits for it. params, gradients: n_padded() elements; gradients are read
  /// before return.
  void start_update(Team& team, const AdamW& adamw, std::span<float> params,
                    std::span<const float> gradients);
  /// Every rank has every parameter after it. Errors: those of the collectives.
  Status finish_update(Traffic& traffic) { return gathers_.wait_all(traffic); }

  const std::vector<OwnedRange>& ranges() const { return ranges_; }
  std::span<float> first_moment() { return m_; }
  std::span<float> second_moment() { return v_; }

 private:
  void gather(int bucket_idx, std::span<float> params);

  Communicator* comm_;
  const BucketPlan* plan_;
  int stage_;
  std::vector<OwnedRange> ranges_;
  std::vector<float> m_;
  std::vector<float> v_;
  PendingCalls gathers_;
};

}  // namespace tern::trainer
