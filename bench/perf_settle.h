// What the flags of a perf program come to for one collective: everything that can be wrong with them is
// found here, before there is a world or a line of output.
#pragma once

#include <vector>

#include "bench/perf_collective.h"
#include "bench/perf_options.h"

namespace tern::bench {

/// Value type.
struct PerfSettings {
  Config config;          ///< the environment's, changed by the flags
  CodecChoice codec;      ///< of sums and averages that can be encoded, from the flag or the setting
  std::string algorithm;  ///< of every call; "": by the rules in `config`
  std::vector<Dtype> dtypes;
  std::vector<Op> ops;
  std::vector<int> roots;
};

/// config: the environment's settings.
/// Errors: kInvalidArgument naming the flag, its value and what is allowed.
Result<PerfSettings> settle(const PerfOptions& options, const PerfCollective& collective, Config config);

}  // namespace tern::bench
