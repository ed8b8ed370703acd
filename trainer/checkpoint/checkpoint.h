// Checkpoints: directories that are complete or not there, and that fit any number of ranks.
//
// step_N/ model.safetensors                     every parameter, whole, by its Hugging Face name
//         optimizer-RRRRR-of-WWWWW.safetensors  moments: NAME.exp_avg[B:E], NAME.exp_avg_sq[B:E], elements
//         [B, E) of NAME residual-RRRRR-of-WWWWW.safetensors   error feedback of rank R, whole tensors; only
//         with such a codec config.json, state.json               Hugging Face's model configuration;
//         counters, text, configuration manifest.json                         sizes and hashes of the others
#pragma once

#include <string>

#include "runtime/communicator/communicator.h"
#include "trainer/checkpoint/train_state.h"

namespace tern::trainer {

struct CheckpointFolder {
  std::string path;
  int64_t keep = 0;  ///< newest checkpoints that stay when one is written; 0: all
};

/// Writes FOLDER/step_N: into step_N.partial, all files synced, then renamed; older checkpoints are
/// untouched until then, and all but the newest are removed after. Collective; returns the
/// path.
///
/// Cost:   16 bytes per parameter over all ranks (weights once, moments), 4 more per rank with residuals.
/// Errors: kIo (disk full; the partial directory is removed), the same on all ranks, with the rank that
/// failed.
Result<std::string> save_checkpoint(Communicator& comm, const TrainState& state, const Progress& progress,
                                    const CheckpointFolder& folder);

/// Reads a checkpoint of any number of ranks into `state`. Collective.
///
/// With the same number of ranks, everything is as it was to the bit. Otherwise moments are cut anew, and the
/// residuals of ranks r, r + M, r + 2M, ... are added up on rank r of M: what error feedback still owes is
/// kept. Errors: kNotFound; kCorrupt naming the file (every file's hash is checked first); kInvalidArgument
/// (another model or text); the same on all ranks.
Result<Progress> load_checkpoint(Communicator& comm, TrainState& state, const std::string& path);

/// The path that `resume` means: itself, or the newest checkpoint under `output_dir` for "latest" (empty when
/// there is none). Rank 0 looks; collective.
Result<std::string> find_checkpoint(Communicator& comm, const std::string& resume,
                                    const std::string& output_dir);

}  // namespace tern::trainer
