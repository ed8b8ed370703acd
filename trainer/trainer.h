// One rank's part of training: passes, reduction, update.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/communicator/communicator.h"
#include "trainer/checkpoint/train_state.h"
#include "trainer/data/dataset.h"
#include "trainer/data/prefetcher.h"
#include "trainer/data/token_file.h"
#include "trainer/metrics.h"
#include "trainer/model/model.h"
#include "trainer/parallel/gradient_reducer.h"
#include "trainer/parallel/sharded_optimizer.h"
#include "trainer/run_plan.h"

namespace tern::trainer {

/// What a step says beyond its numbers.
struct StepOutcome {
  StepRecord record;
  bool stop = false;  ///< some rank was asked to stop
};

/// Steps in a row whose update could not be applied after which a run is given up.
inline constexpr int kMostSkippedInARow = 10;

/// Model, data, reducer and optimiser of one rank. All ranks make the same calls in the same order.
///
/// Loss: sum of token losses over the tokens of all ranks and passes, divided by their number; the gradient
/// is that loss's, so it does not depend on how the batch is cut into passes and ranks. Memory:
/// predict_memory(); parameters and gradients lie in memory that collectives use in place. Threads: one, and
/// the model's team.
class Trainer {
 public:
  /// `comm` and `tokens` must outlive it. Not collective.
  /// Errors: kInvalidArgument (data too small for the batch), kOutOfMemory.
  static Result<std::unique_ptr<Trainer>> create(Communicator& comm, const RunConfig& config,
                                                 const RunPlan& plan, const TokenFile& tokens);

  ~Trainer();

  /// The next optimiser step. Collective. A loss or gradient that is not finite on any rank stops the update
  /// on all ranks; the record names the first tensor and rank. Errors: those of the collectives;
  /// kInvalidArgument after kMostSkippedInARow skipped steps.
  Result<StepOutcome> step(bool stop_requested);

  /// Mean loss over the same validation sequences every time, on all ranks. Collective. 0 without validation.
  Result<double> validate();

  const Progress& progress() const { return progress_; }
  /// Goes on from a loaded checkpoint.
  void resume_at(const Progress& progress) { progress_ = progress; }
  /// Views for saving and loading.
  TrainState state();
  std::span<const float> parameters() const;

 private:
  struct Parts;
  Trainer(Communicator& comm, const RunConfig& config, const RunPlan& plan, std::unique_ptr<Parts> parts);
  Result<double> run_passes(StepRecord& record);
  Status update(StepRecord& record);
  const TokenBatch& next_batch(StepRecord& record);
  void zero_gradients();
  void note_codecs(StepRecord& record, bool measures);

  Communicator* comm_;
  RunConfig config_;
  RunPlan plan_;
  std::unique_ptr<Parts> parts_;
  Progress progress_;
  int n_skipped_in_a_row_ = 0;
  double hidden_seconds_ = 0;  ///< of the last step: what backward and the collectives ran side by side
};

}  // namespace tern::trainer
