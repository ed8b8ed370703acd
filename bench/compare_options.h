// The flags of compare.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/compare_group.h"

namespace tern::bench {

struct CompareOptions {
  std::vector<int> ranks = {2, 4};
  std::vector<Exercise> exercises;
  uint64_t min_bytes = 1 << 10;
  uint64_t max_bytes = 64 << 20;
  int factor = 4;
  int repetitions = 5;
  double batch_seconds = 0.02;  ///< about how long one repetition of one library takes
  std::vector<std::string> peers;
  std::string transport;  ///< Tern's; with "ucx" or "tcp", Open MPI is held to its TCP transport
  std::string mpirun_args;
  std::string json_file;
};

struct CompareCommand {
  CompareOptions options;
  std::string help;  ///< not empty: print it and end well
};

/// known: names of the peers that were built. Errors: kInvalidArgument naming the flag, its value and what is
/// allowed.
Result<CompareCommand> parse_compare_options(std::span<const char* const> args,
                                             const std::vector<std::string>& known);

/// Sizes of the sweep: min_bytes, times factor, up to max_bytes.
std::vector<uint64_t> compare_sizes(const CompareOptions& options);

}  // namespace tern::bench
