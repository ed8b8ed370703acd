// Gradients of all ranks summed, bucket by bucket, while backward still runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/communicator/communicator.h"
#include "trainer/parallel/bucket_plan.h"
#include "trainer/parallel/pending_calls.h"

namespace tern::trainer {

struct ReducerOptions {
  int stage = 0;  ///< 0: all-reduce, every rank has every sum; 2: reduce-scatter, a rank has its shards' sums
  bool overlap = true;  ///< start a bucket as soon as it is complete; false: all after backward
  CodecSpec codec;
  bool residual = false;
};

/// An element of this rank's own gradient that is not finite.
struct NonFinite {
  int64_t element_idx = 0;  ///< in the flat buffer
};

/// Owns the flat gradient buffer (memory that collectives use in place) and the residuals, and reduces the
/// buffer once per optimiser step. The bytes are those of the buckets: nothing is copied but the residual's
/// safety copy.
///
/// Every rank launches the same buckets in the same order, because backward finishes parameters in a fixed
/// order. Memory: 4 bytes per element; with a residual 8 more (the residual and its value before the step,
/// for roll-back). Threads: one.
class GradientReducer {
 public:
  /// `comm`, `plan` must outlive it. Errors: kOutOfMemory.
  static Result<GradientReducer> create(Communicator& comm, const BucketPlan& plan,
                                        const ReducerOptions& options);

  /// The local gradients, n_padded() elements; backward adds to them. Not to be touched between the last
  /// parameter_ready() and finish().
  std::span<float> gradients() { return buffer_.as<float>().first(static_cast<size_t>(plan_->n_padded())); }

  /// Starts a step; `compress` false sends this one dense.
  void begin_step(uint32_t step, bool compress);
  /// The parameter's gradient is final on this rank; with overlap, starts every bucket that is complete now.
  void parameter_ready(int param_idx);
  /// Starts what has not been started, and waits. Errors: those of the collectives.
  Status finish(Traffic& traffic);

  /// Known after finish(): the lowest local element that was not finite before the reduction.
  const std::optional<NonFinite>& non_finite() const { return non_finite_; }
  /// The step's update is not applied: the residuals go back to what they were when it began.
  void roll_back_residual();

  /// The residual memory, as long as the gradients; empty without one.
  std::span<float> residual() { return residual_; }

 private:
  GradientReducer(Communicator& comm, const BucketPlan& plan, const ReducerOptions& options,
                  Allocation buffer);
  void launch(int bucket_idx);
  CallOptions call_options(int bucket_idx);

  Communicator* comm_;
  const BucketPlan* plan_;
  ReducerOptions options_;
  Allocation buffer_;
  std::vector<float> residual_;
  std::vector<float> residual_before_;
  std::vector<int> n_waiting_;  ///< parameters of each bucket that are not ready
  std::vector<bool> launched_;
  PendingCalls calls_;
  std::optional<NonFinite> non_finite_;
  uint32_t step_ = 0;
  bool compress_ = false;
};

}  // namespace tern::trainer
