#include "bench/perf_result.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tern::bench {
namespace {

/// nccl-tests' rank of a percentile: the least index below which that share lies.
double percentile(const std::vector<double>& sorted, size_t percent) {
  const size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::min(sorted.size(), std::max<size_t>(rank, 1)) - 1];
}

}  // namespace

IterationStats iteration_stats(const PlacementResult& placement) {
  IterationStats stats;
  for (const std::vector<double>& seconds : placement.rank_seconds) {
    stats.times.resize(std::max(stats.times.size(), seconds.size()), 0.0);
    for (size_t i = 0; i < seconds.size(); ++i) stats.times[i] = std::max(stats.times[i], seconds[i] * 1e6);
  }
  if (stats.times.empty()) return stats;
  std::vector<double> sorted = stats.times;
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  stats.min = sorted.front();
  stats.max = sorted.back();
  stats.p50 = sorted[sorted.size() / 2];
  stats.p95 = percentile(sorted, 95);
  stats.p99 = percentile(sorted, 99);
  stats.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / n;
  double squares = 0;
  for (const double t : sorted) squares += (t - stats.mean) * (t - stats.mean);
  stats.stdev = std::sqrt(squares / n);
  stats.cv_percent = stats.mean > 0 ? 100 * stats.stdev / stats.mean : 0;
  return stats;
}

}  // namespace tern::bench
