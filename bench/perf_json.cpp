#include "bench/perf_json.h"

#include <cerrno>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

namespace tern::bench {
namespace {

using Json = nlohmann::ordered_json;

Json truth(bool value) {
  return value ? "true" : "false";
}

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json("nan");
}

Json placement_json(const PlacementResult& p, const PerfOptions& o) {
  Json j;
  j[o.report_cputime ? "cpu_time" : "time"] = number(p.seconds * 1e6);
  j["alg_bw"] = number(p.alg_gb_per_s);
  j["bus_bw"] = number(p.bus_gb_per_s);
  j["nwrong"] = p.n_wrong ? Json(*p.n_wrong) : Json();
  j["predicted_us"] = number(p.predicted_seconds * 1e6);
  j["algorithm"] = p.algorithm;
  j["bytes_on_wire"] = p.bytes_on_wire;
  if (p.vnmse) j["vnmse"] = number(*p.vnmse);
  return j;
}

Json per_iteration_json(const PlacementResult& p, const PerfOptions& o) {
  const IterationStats stats = iteration_stats(p);
  Json j = {{"skipped_iterations", o.per_iter_skip},
            {"min_us", stats.min},
            {"max_us", stats.max},
            {"avg_us", stats.mean},
            {"p50_us", stats.p50},
            {"p95_us", stats.p95},
            {"p99_us", stats.p99},
            {"stdev_us", stats.stdev},
            {"cv_pct", stats.cv_percent},
            {"times_us", stats.times}};
  Json per_rank = Json::array();
  for (std::vector<double> seconds : p.rank_seconds) {
    for (double& s : seconds) s *= 1e6;
    per_rank.push_back(seconds);
  }
  if (p.rank_seconds.size() > 1) j["per_process_max_times_us"] = per_rank;
  return j;
}

Json row_json(const RowResult& row, const RunInfo& run) {
  Json j = {{"size", row.n_bytes},
            {"count", row.count},
            {"type", info(row.dtype).nccl_name},
            {"redop", row.op},
            {"root", fmt::format("{:6}", row.root)},
            {"codec", row.codec}};
  const bool per_iteration = run.options.per_iter_timing;
  j["out_of_place"] = placement_json(row.out_of_place, run.options);
  if (per_iteration) j["out_of_place_per_iter"] = per_iteration_json(row.out_of_place, run.options);
  j["in_place"] = placement_json(row.in_place, run.options);
  if (per_iteration) j["in_place_per_iter"] = per_iteration_json(row.in_place, run.options);
  j["actual_iterations"] = row.iters;
  j["experiment_name"] = run.experiment;
  return j;
}

Json config_json(const RunInfo& run) {
  const PerfOptions& o = run.options;
  Json j = {{"nthreads", o.n_threads},
            {"ngpus", o.n_gpus},
            {"minimum_bytes", o.min_bytes},
            {"maximum_bytes", o.max_bytes}};
  if (o.step_factor > 1)
    j["step_factor"] = o.step_factor;
  else
    j["step_bytes"] = o.step_bytes;
  j["warmup_iters"] = o.warmup_iters;
  j["iterations"] = o.iters;
  j["aggregated_iterations"] = o.agg_iters;
  j["validation"] = o.check;
  j["graph"] = 0;
  j["blocking_collectives"] = truth(false);
  j["per_iter_timing"] = truth(o.per_iter_timing);
  j["parallel_init"] = truth(false);
  j["unalign"] = o.unalign;
  j["local_register"] = o.local_register;
  j["codec"] = o.codec.empty() ? "none" : o.codec;
  j["algorithm"] = o.algorithm;
  j["transport"] = o.transport;
  j["devices"] = Json::array();
  for (const RankLine& r : run.ranks)
    j["devices"].push_back({{"rank", r.rank},
                            {"group", r.group},
                            {"pid", r.pid},
                            {"hostname", r.host},
                            {"device", r.device},
                            {"device_hex", r.device_hex},
                            {"device_info", r.device_info}});
  return j;
}

}  // namespace

std::string to_json(const JsonReport& report) {
  const Summary& summary = *report.summary;
  Json j = {{"version", 3},
            {"start_time", report.start_time},
            {"args", report.run->args},
            {"env", report.run->env},
            {"nccl_version", TERN_VERSION_CODE},
            {"tern_version", TERN_VERSION},
            {"config", config_json(*report.run)},
            {"results", Json::array()}};
  for (const RowResult& row : *report.rows) j["results"].push_back(row_json(row, *report.run));
  j["out_of_bounds"] = {{"count", summary.n_wrong}, {"okay", truth(summary.n_wrong == 0)}};
  j["average_bus_bandwidth"] = {
      {"bandwidth", number(summary.average_bus_gb_per_s)},
      {"okay", summary.least_bus_gb_per_s ? truth(summary.fast_enough()) : Json("unchecked")}};
  j["errors"] = summary.errors;
  j["end_time"] = report.end_time;
  return j.dump(1);
}

Status write_json(const std::string& path, const JsonReport& report) {
  std::ofstream file(path);
  file << to_json(report) << "\n";
  file.close();
  if (!file)
    return error(Code::kIo, "cannot write the JSON report {}: {}", path,
                 std::generic_category().message(errno));
  return {};
}

}  // namespace tern::bench
