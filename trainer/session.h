// A run from start to end: set-up, resume, steps, validation, checkpoints, summary.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/bootstrap/world.h"
#include "trainer/config/run_config.h"

namespace tern::trainer {

/// Where rank 0 says how it goes; other ranks say nothing.
struct Console {
  std::function<void(std::string_view)> write;
  bool is_terminal = false;  ///< lines may be overwritten
};

struct RunOutcome {
  bool interrupted = false;        ///< stopped by request before its last step
  std::string checkpoint;          ///< last one written, or the one that left nothing to do; empty: none
  nlohmann::ordered_json summary;  ///< of summary.json, on rank 0; null when there was nothing to do
};

/// Runs this rank's part. All ranks of the world call it with the same configuration.
///
/// config: or why there is none on this rank; the ranks agree on that like on any other failure of one of
/// them. stop:   asked once per step. Errors: the same sentence on all ranks, or what made the world fail;
/// Error::rank is the rank at fault. The world has
///         been told before this returns, so no rank waits for another.
Result<RunOutcome> run_training(const World& world, const Result<RunConfig>& config, const Console& console,
                                const std::function<bool()>& stop);

/// True on the one rank that must report a run's failure: the one that failed, or the lowest that can speak
/// for one that is lost.
bool speaks_for_failure(const World& world, const Error& error);

}  // namespace tern::trainer
