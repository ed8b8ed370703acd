#include "bench/perf_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tern::bench {
namespace {

using nlohmann::json;

struct PerfReport {
  RunInfo info;
  std::vector<RowResult> rows;
  Summary summary;

  json report() const {
    return json::parse(
        to_json({.run = &info, .rows = &rows, .summary = &summary, .start_time = "then", .end_time = "now"}));
  }
};

PerfReport one_row() {
  PerfReport run;
  run.info.program = "all_reduce_perf";
  run.info.experiment = "AllReduce";
  run.info.args = {"all_reduce_perf", "-b", "8"};
  run.info.ranks = {{.rank = 0, .pid = 7, .host = "h", .device_info = "CPU"}};
  RowResult row = {.n_bytes = 1024, .count = 256, .op = "sum", .iters = 20};
  row.out_of_place = {
      .seconds = 2e-6, .alg_gb_per_s = 0.5, .bus_gb_per_s = 0.75, .n_wrong = 0, .bytes_on_wire = 99};
  row.in_place = row.out_of_place;
  row.in_place.n_wrong.reset();
  row.in_place.vnmse = 1e-4;
  run.rows = {row};
  run.summary.average_bus_gb_per_s = 0.75;
  return run;
}

TEST(PerfJson, HasTheKeysOfVersion3InNcclTestsTypes) {
  const json j = one_row().report();
  EXPECT_EQ(j["version"], 3);
  EXPECT_EQ(j["start_time"], "then");
  EXPECT_EQ(j["end_time"], "now");
  EXPECT_EQ(j["args"].size(), 3U);
  EXPECT_TRUE(j["nccl_version"].is_number_integer());
  for (const char* key : {"env", "config", "results", "out_of_bounds", "average_bus_bandwidth", "errors"})
    EXPECT_TRUE(j.contains(key)) << key;
  for (const char* key : {"nthreads", "ngpus", "minimum_bytes", "maximum_bytes", "step_bytes", "warmup_iters",
                          "iterations", "aggregated_iterations", "validation", "graph", "devices"})
    EXPECT_TRUE(j["config"].contains(key)) << key;
  for (const char* key : {"rank", "group", "pid", "hostname", "device", "device_hex", "device_info"})
    EXPECT_TRUE(j["config"]["devices"][0].contains(key)) << key;
  EXPECT_EQ(j["out_of_bounds"]["okay"], "true");
  EXPECT_EQ(j["average_bus_bandwidth"]["okay"], "unchecked");
}

TEST(PerfJson, RowsHoldBothPlacements) {
  const json row = one_row().report()["results"][0];
  EXPECT_EQ(row["size"], 1024);
  EXPECT_EQ(row["count"], 256);
  EXPECT_EQ(row["type"], "float");
  EXPECT_EQ(row["redop"], "sum");
  EXPECT_EQ(row["root"], "    -1");
  EXPECT_EQ(row["actual_iterations"], 20);
  EXPECT_EQ(row["experiment_name"], "AllReduce");
  EXPECT_DOUBLE_EQ(row["out_of_place"]["time"], 2);
  EXPECT_DOUBLE_EQ(row["out_of_place"]["alg_bw"], 0.5);
  EXPECT_DOUBLE_EQ(row["out_of_place"]["bus_bw"], 0.75);
  EXPECT_EQ(row["out_of_place"]["nwrong"], 0);
  EXPECT_EQ(row["out_of_place"]["bytes_on_wire"], 99);
  EXPECT_FALSE(row["out_of_place"].contains("vnmse"));
  EXPECT_TRUE(row["in_place"]["nwrong"].is_null());
  EXPECT_DOUBLE_EQ(row["in_place"]["vnmse"], 1e-4);
  EXPECT_FALSE(row.contains("in_place_per_iter"));
}

TEST(PerfJson, PerIterationTimesAreListedByRank) {
  PerfReport run = one_row();
  run.info.options.per_iter_timing = true;
  run.info.options.report_cputime = true;
  run.rows[0].out_of_place.rank_seconds = {{1e-6, 2e-6}, {3e-6, 1e-6}};
  const json row = run.report()["results"][0];
  EXPECT_TRUE(row["out_of_place"].contains("cpu_time"));
  const json& stats = row["out_of_place_per_iter"];
  for (const char* key : {"skipped_iterations", "min_us", "max_us", "avg_us", "p50_us", "p95_us", "p99_us",
                          "stdev_us", "cv_pct", "times_us", "per_process_max_times_us"})
    EXPECT_TRUE(stats.contains(key)) << key;
  EXPECT_EQ(stats["per_process_max_times_us"].size(), 2U);
  EXPECT_NEAR(stats["max_us"].get<double>(), 3, 1e-9);
}

TEST(PerfJson, AFileThatCannotBeWrittenIsAnErrorWithItsName) {
  const PerfReport run = one_row();
  const Status status = write_json(
      "/no/such/folder/x.json",
      {.run = &run.info, .rows = &run.rows, .summary = &run.summary, .start_time = "", .end_time = ""});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("/no/such/folder/x.json"), std::string::npos);
}

}  // namespace
}  // namespace tern::bench
