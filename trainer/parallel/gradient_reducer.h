// Gradients of all ranks summed, bucket by bucket, while backward still runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/communicator/communicator.h"
#include "trainer/parallel/bucket_plan.h"
#include "trainer/parallel/pending_calls.h"

namespace tern::trainer {

struct ReducerOptions {
  int stage = 0;  ///< 0: all-reduce, every rank has every sum; 2: reduce-scatter, a rank has its shards' sums
  bool overlap = true;  ///< start a bucket as soon as it is complete; false: all after backward
  CodecChoice codec;
  bool residual = false;
};

/// How a step's gradients were encoded, on this rank.
struct CodecUse {
  int n_encoded = 0;  ///< buckets
  CodecSpec codec;    ///< of the last of them
  uint64_t n_saturated = 0;
  int n_non_finite = 0;               ///< buckets in which an encoded element was not finite
  std::vector<EncodingError> errors;  ///< by bucket, where it was measured; of dense buckets nothing
  std::string text() const { return n_encoded > 0 ? to_string(codec) : std::string("none"); }
};

/// What begin_step() is told.
struct ReducerStep {
  uint32_t step = 0;
  bool compress = false;        ///< false: this one goes dense
  bool measures_error = false;  ///< CodecUse::errors
  /// Codec auto: how long the collectives may take that backward hides; the same on all ranks.
  double hidden_seconds = 0;
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

  void begin_step(const ReducerStep& step);
  /// The parameter's gradient is final on this rank; with overlap, starts every bucket that is complete now.
  void parameter_ready(int param_idx);
  /// Starts what has not been started, and waits. Errors: those of the collectives.
  Status finish(Traffic& traffic);

  /// Known after finish(): the lowest local element that was not finite before the reduction.
  const std::optional<NonFinite>& non_finite() const { return non_finite_; }
  /// Known after finish().
  const CodecUse& codec_use() const { return codec_use_; }
  /// From the first bucket's start to finish(), in which backward and the collectives ran side by side.
  double overlap_seconds() const { return overlap_seconds_; }
  /// The step's update is not applied: the residuals go back to what they were when it began.
  void roll_back_residual();

  /// The residual memory, as long as the gradients; empty without one.
  std::span<float> residual() { return residual_; }

 private:
  GradientReducer(Communicator& comm, const BucketPlan& plan, const ReducerOptions& options,
                  Allocation buffer);
  void launch(int bucket_idx);
  CallOptions call_options(int bucket_idx);
  void note_codecs();

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
  ReducerStep step_;
  std::vector<int> order_;  ///< buckets as they were launched
  Clock::time_point first_launch_;
  double overlap_seconds_ = 0;
  CodecUse codec_use_;
};

}  // namespace tern::trainer
