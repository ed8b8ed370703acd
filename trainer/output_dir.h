// run.output_dir at the start of a run: what an earlier run left in it is never lost without a word.
#pragma once

#include <string>
#include <vector>

#include "trainer/config/run_config.h"

namespace tern::trainer {

/// What is in an output directory that the run about to start does not go on from. Value type.
struct Leftovers {
  std::vector<int64_t> checkpoints;  ///< steps, ascending: all of another run, or those after the resumed one
  bool resumes_here = false;         ///< the run goes on from a checkpoint in this directory
  bool has_metrics = false;          ///< metrics.jsonl of another run, which this run's will replace
};

/// start: the checkpoint that the run resumes from; empty: none.
Leftovers find_leftovers(const std::string& output_dir, const std::string& start);

/// Errors: kInvalidArgument naming the checkpoints, unless run.overwrite allows to delete them.
Status check_leftovers(const RunOptions& run, const Leftovers& left);

/// Deletes the checkpoints. Returns the lines that tell the user what is gone; empty: nothing.
/// Errors: kIo.
Result<std::string> remove_leftovers(const std::string& output_dir, const Leftovers& left);

}  // namespace tern::trainer
