#include "bench/perf_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

namespace tern::bench {
namespace {

constexpr std::string_view kFormatOf = "2.19";  // the nccl-tests release whose layout this is

/// The columns of one placement, for the two head lines.
struct PlacementHead {
  std::string names;
  std::string units;
};

PlacementHead placement_head(const PerfOptions& o) {
  PlacementHead head;
  head.names = fmt::format("  {:>7}  {:>6}  {:>6}", o.report_cputime ? "cputime" : "time", "algbw", "busbw");
  head.units = fmt::format("  {:>7}  {:>6}  {:>6}", "(us)", "(GB/s)", "(GB/s)");
  if (o.predict) {
    head.names += fmt::format("  {:>9}", "predicted");
    head.units += fmt::format("  {:>9}", "(us)");
  }
  head.names += fmt::format("  {:>6}", "#wrong");
  head.units += fmt::format("  {:>6}", "");
  if (o.per_iter_timing) {
    head.names += fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", "i_min", "i_max", "i_p99", "i_cv%");
    head.units += fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", "(us)", "(us)", "(us)", "(%)");
  }
  return head;
}

std::string placement_text(const PlacementResult& p, const PerfOptions& o) {
  std::string text = fmt::format("  {}  {}  {}", fit_number(p.seconds * 1e6, 7),
                                 fit_number(p.alg_gb_per_s, 6), fit_number(p.bus_gb_per_s, 6));
  if (o.predict) text += fmt::format("  {}", fit_number(p.predicted_seconds * 1e6, 9));
  text +=
      p.n_wrong ? fmt::format("  {:>6g}", static_cast<double>(*p.n_wrong)) : fmt::format("  {:>6}", "N/A");
  if (o.per_iter_timing) {
    const IterationStats stats = iteration_stats(p);
    for (const double x : {stats.min, stats.max, stats.p99, stats.cv_percent})
      text += fmt::format("  {}", fit_number(x, 7));
  }
  return text;
}

std::string label(std::string_view name, const std::string& value) {
  return fmt::format("# {:<20} : {}\n", name, value);
}

}  // namespace

std::string fit_number(double value, int width) {
  for (const int decimals : {2, 1, 0}) {
    std::string text = fmt::format("{:>{}.{}f}", value, width, decimals);
    if (text.size() <= static_cast<size_t>(width)) return text;
  }
  return fmt::format("{:>{}.{}e}", value, width, width >= 7 ? 1 : 0);
}

std::string timestamp_now() {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::time(nullptr)));
}

std::string text_preamble(const RunInfo& run) {
  const PerfOptions& o = run.options;
  const bool factor = o.step_factor > 1;
  std::string text = fmt::format("# tern-tests version {0} nccl-tests-format={1} tern-library={0}\n",
                                 TERN_VERSION, kFormatOf);
  text += fmt::format("# Collective test starting: {}\n", run.program);
  text += fmt::format(
      "# nThread {} nGpus {} minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg iters: {} "
      "validation: {} graph: 0 unalign: {}\n",
      o.n_threads, o.n_gpus, o.min_bytes, o.max_bytes,
      factor ? static_cast<uint64_t>(o.step_factor) : o.step_bytes, factor ? "factor" : "bytes",
      o.warmup_iters, o.iters, o.agg_iters, o.check, o.unalign);
  text += "#\n# Using devices\n";
  for (const RankLine& r : run.ranks) {
    text += fmt::format("#  Rank {:2} Group {:2} Pid {:6} on {:>10} device {:2} [{}] {}\n", r.rank, r.group,
                        r.pid, r.host, r.device, r.device_hex, r.device_info);
  }
  return text;
}

std::string text_table_head(const PerfOptions& o) {
  const PlacementHead head = placement_head(o);
  const auto width = static_cast<int>(head.names.size());
  std::string text = "#\n";
  if (o.per_iter_timing && o.agg_iters > 1)
    text += fmt::format("# i_*: an iteration is {} calls in flight together; its time is divided by {}\n",
                        o.agg_iters, o.agg_iters);
  const auto centred = [width](std::string_view title) {
    return fmt::format("{:>{}}", title, (width + 1 + static_cast<int>(title.size())) / 2);
  };
  text += fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{:<{}}{}\n", "", "", "", "", "",
                      centred("out-of-place"), width, centred("in-place"));
  text += fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}{}", "size", "count", "type", "redop", "root",
                      head.names, head.names);
  text += o.report_timestamps ? fmt::format("  {:>19}\n", "timestamp") : "\n";
  text += fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}{}", "(B)", "(elements)", "", "", "",
                      head.units, head.units);
  text += o.report_timestamps ? fmt::format("  {:>19}\n", "%Y-%m-%d %H:%M:%S") : "\n";
  return text;
}

std::string text_row(const RowResult& row, const PerfOptions& o, const std::string& timestamp) {
  std::string text = fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}", row.n_bytes, row.count,
                                 info(row.dtype).nccl_name, row.op, row.root);
  text += placement_text(row.out_of_place, o);
  text += placement_text(row.in_place, o);
  if (o.report_timestamps) text += fmt::format("  {:>19}", timestamp);
  return text + "\n";
}

std::string text_footer(const RunInfo& run, const Summary& summary) {
  std::string text = label("Out of bounds values",
                           fmt::format("{} {}", summary.n_wrong, summary.n_wrong != 0 ? "FAILED" : "OK"));
  std::string verdict;
  if (summary.least_bus_gb_per_s) verdict = summary.fast_enough() ? " OK" : " FAILED";
  text += label("Avg bus bandwidth", fmt::format("{:g}{}", summary.average_bus_gb_per_s, verdict));
  text += fmt::format("#\n# Collective test concluded: {}\n", run.program);
  if (!summary.memory.empty()) text += label("Memory usage", summary.memory);
  for (const std::string& e : summary.errors) text += fmt::format("# error: {}\n", e);
  return text;
}

}  // namespace tern::bench
