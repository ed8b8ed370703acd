// A whole perf program: worlds, sweep, reports.
#pragma once

#include <cstdio>

#include "bench/perf_collective.h"
#include "bench/perf_options.h"

namespace tern::bench {

/// Runs the program of one collective: rank 0 writes the text report to `out` and the JSON file. args: with
/// the program's name first. Returns: the exit status: 0 when everything was right; 1 after wrong results,
/// errors (one sentence on stderr) or a bandwidth below NCCL_TESTS_MIN_BW; 2 for flags that cannot be.
int run_perf(const PerfCollective& collective, std::span<const char* const> args, std::FILE* out);

/// The sizes of a sweep, in order.
std::vector<uint64_t> sweep_sizes(const PerfOptions& options);

}  // namespace tern::bench
