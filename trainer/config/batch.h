// The batch equation: train_batch_size = train_micro_batch_size_per_gpu * gradient_accumulation_steps *
// world.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/base/status.h"

namespace tern::trainer {

/// What the configuration gives; any two of the three, or one of the first two.
struct BatchRequest {
  std::optional<int64_t> train;         ///< sequences per optimiser step, all ranks
  std::optional<int64_t> micro;         ///< sequences per pass of one rank
  std::optional<int64_t> accumulation;  ///< passes per optimiser step
};

struct Batch {
  int64_t train = 1;
  int64_t micro = 1;
  int64_t accumulation = 1;
  bool operator==(const Batch&) const = default;
};

/// Solves the equation as DeepSpeed does: missing values by whole division, then everything is checked.
/// Errors: kInvalidArgument with all numbers, when it does not hold or too little is given.
Result<Batch> solve_batch(const BatchRequest& request, int world_size);

}  // namespace tern::trainer
