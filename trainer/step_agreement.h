// What the ranks tell each other once per step, after the reduction and before the update.
#pragma once

#include <string>

#include "runtime/communicator/communicator.h"
#include "trainer/model/parameters.h"
#include "trainer/parallel/pending_calls.h"

namespace tern::trainer {

/// One rank's part; doubles hold all of it exactly.
struct StepVote {
  double loss_sum = 0;         ///< of this rank's tokens
  double sum_of_squares = 0;   ///< of the reduced gradients that this rank counts
  double bad_element = -1;     ///< first element of its own gradient that is not finite; -1: none
  double stop = 0;             ///< 1: asked to stop
  double overlap_seconds = 0;  ///< see GradientReducer
};

/// The same on all ranks.
struct StepVerdict {
  double loss_sum = 0;
  double sum_of_squares = 0;
  bool stop = false;
  double overlap_seconds = 0;  ///< the least
  std::string skip;            ///< why the update must not be applied, naming rank and tensor; empty: apply
};

/// Exchanges votes and sums in rank order. replicated: every rank counted all gradients (stage 0).
/// Collective; the time is added to `traffic`.
Result<StepVerdict> agree_on_step(Communicator& comm, const StepVote& mine, bool replicated,
                                  const ParameterLayout& layout, Traffic& traffic);

}  // namespace tern::trainer
