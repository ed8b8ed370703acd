// Gradients as training makes them: of a run's model after its first steps, one for each rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace tern::bench {

struct GradientsRequest {
  std::string run_file = "trainer/configs/kjv.json";  ///< as tern-train's
  std::string text;                                   ///< "": the run file's
  int n_steps = 20;     ///< updates before the gradients are taken, on one rank; 0: of the initial weights
  int n_sequences = 0;  ///< that a rank's gradient is of; 0: the run file's train_micro_batch_size_per_gpu
  int n_ranks = 1;
};

/// Of the matrices only: one-dimensional parameters are never compressed.
struct ModelGradients {
  std::vector<std::vector<float>> of_ranks;  ///< each of the mean loss of sequences of its own
  int n_sequences = 0;                       ///< of one rank
  int64_t n_parameters = 0;                  ///< of the model
  double first_loss = 0;                     ///< of the first update's sequences, before it
  double last_loss = 0;                      ///< the mean of the ranks' own
};

/// Trains as the run file says (clipping, schedule and weight decay included) and takes each rank's gradient.
/// Memory: 16 bytes per parameter while it trains, 4 for each rank.
/// Errors: those of the run file, its text and its model, naming what is wrong.
Result<ModelGradients> model_gradients(const GradientsRequest& request);

}  // namespace tern::bench
