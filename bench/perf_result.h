// What a perf program found out: the values that the text and JSON reports print.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/perf_options.h"
#include "runtime/base/dtype.h"

namespace tern::bench {

/// One placement (out of place, in place) of one row.
struct PlacementResult {
  double seconds = 0;  ///< per call, over the ranks as -a says
  double alg_gb_per_s = 0;
  double bus_gb_per_s = 0;
  std::optional<uint64_t> n_wrong;  ///< over all ranks and checked runs; nothing with -c 0
  double predicted_seconds = 0;
  uint64_t bytes_on_wire = 0;   ///< of the rank that sent most, per call
  std::optional<double> vnmse;  ///< codec runs: |result - exact|^2 / |exact|^2
  std::string algorithm;
  std::vector<std::vector<double>> rank_seconds;  ///< -I: [rank][iteration], without the skipped ones
};

struct RowResult {
  uint64_t n_bytes = 0;
  uint64_t count = 0;
  Dtype dtype = Dtype::kFloat32;
  std::string op = "none";
  int root = -1;
  std::string codec;  ///< of the calls of this row
  PlacementResult out_of_place;
  PlacementResult in_place;
  int iters = 0;
};

/// A line of "Using devices".
struct RankLine {
  int rank = 0;
  int group = 0;
  int pid = 0;
  std::string host;
  int device = 0;
  std::string device_hex = "0000:00:00";  ///< PCI address; zeros for a CPU
  std::string device_info;
};

struct RunInfo {
  std::string program;     ///< "all_reduce_perf"
  std::string experiment;  ///< "AllReduce"
  PerfOptions options;
  std::vector<RankLine> ranks = {};
  std::vector<std::string> args;
  std::vector<std::string> env;  ///< NAME=value of each setting that is not its default
};

struct Summary {
  uint64_t n_wrong = 0;
  double average_bus_gb_per_s = 0;
  std::optional<double> least_bus_gb_per_s;  ///< NCCL_TESTS_MIN_BW
  std::string memory;                        ///< -M: the text after the label
  std::vector<std::string> errors;

  /// False below 0.9 of the asked bandwidth.
  bool fast_enough() const {
    return !least_bus_gb_per_s || average_bus_gb_per_s >= 0.9 * *least_bus_gb_per_s;
  }
  bool good() const { return n_wrong == 0 && errors.empty() && fast_enough(); }
};

/// Order statistics of the iterations of -I; each iteration counts with its slowest rank. Microseconds.
struct IterationStats {
  double min = 0, max = 0, mean = 0, p50 = 0, p95 = 0, p99 = 0, stdev = 0, cv_percent = 0;
  std::vector<double> times;
};
IterationStats iteration_stats(const PlacementResult& placement);

}  // namespace tern::bench
