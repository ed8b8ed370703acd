// The flags of <collective>_perf: those of nccl-tests 2.19, and Tern's own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace tern::bench {

/// How the times of the ranks become the one time that is printed.
enum class Average : uint8_t { kRank0, kMean, kMin, kMax };

/// One run of a perf program, flag by flag; value type. Defaults are nccl-tests' except local_register.
struct PerfOptions {
  int n_threads = 1;  ///< n_threads * n_gpus ranks run as threads of one process
  int n_gpus = 1;
  uint64_t min_bytes = 32ULL << 20;
  uint64_t max_bytes = 32ULL << 20;
  uint64_t step_bytes = 1ULL << 20;
  int step_factor = 1;  ///< > 1: multiply instead of adding step_bytes
  int iters = 20;
  int warmup_iters = 1;
  int agg_iters = 1;
  int run_cycles = 1;  ///< 0: until killed
  int check = 1;       ///< untimed checked runs per placement
  std::string op = "sum";
  std::string datatype = "float";
  int root = 0;  ///< -1: every rank in turn
  double timeout_s = 0;
  bool report_cputime = false;
  bool report_timestamps = false;
  std::string json_file;
  Average average = Average::kMean;
  int local_register = 1;  ///< 0: plain memory; 1, 2: tern::allocate
  bool memory_report = false;
  int unalign = 0;  ///< elements by which both buffers miss their alignment
  bool per_iter_timing = false;
  int per_iter_skip = 0;
  std::string codec;      ///< "": the setting TERN_CODEC
  std::string algorithm;  ///< "": the planner
  std::string transport;  ///< "": the setting TERN_TRANSPORT
  bool predict = false;

  int n_ranks_in_process() const { return n_threads * n_gpus; }
  bool shared_memory() const { return local_register != 0; }
};

/// What the command line asked for.
struct PerfCommand {
  PerfOptions options;
  std::string help;                         ///< not empty: print it and end well
  std::vector<std::string> without_effect;  ///< GPU-only flags that were given, as written in the help
};

/// args: with the program's name first.
/// Errors: kInvalidArgument naming the flag, its value and what is allowed.
Result<PerfCommand> parse_perf_options(std::span<const char* const> args);

}  // namespace tern::bench
