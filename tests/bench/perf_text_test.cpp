#include "bench/perf_text.h"

#include <gtest/gtest.h>

namespace tern::bench {
namespace {

TEST(PerfText, NumbersKeepTwoDecimalsThenOneThenNoneThenAnExponent) {
  EXPECT_EQ(fit_number(0, 7), "   0.00");
  EXPECT_EQ(fit_number(4.567, 7), "   4.57");
  EXPECT_EQ(fit_number(9999.99, 7), "9999.99");
  EXPECT_EQ(fit_number(9999.999, 7), "10000.0");
  EXPECT_EQ(fit_number(12345.67, 7), "12345.7");
  EXPECT_EQ(fit_number(123456.7, 7), " 123457");
  EXPECT_EQ(fit_number(1234567, 7), "1234567");
  EXPECT_EQ(fit_number(12345678, 7), "1.2e+07");
  EXPECT_EQ(fit_number(999.99, 6), "999.99");
  EXPECT_EQ(fit_number(1234.5, 6), "1234.5");
  EXPECT_EQ(fit_number(1234567, 6), " 1e+06");
}

RunInfo two_ranks() {
  RunInfo run;
  run.program = "all_reduce_perf";
  run.experiment = "AllReduce";
  run.options.min_bytes = 8;
  run.options.max_bytes = 1024;
  run.options.step_factor = 2;
  for (int r = 0; r < 2; ++r)
    run.ranks.push_back(
        {.rank = r, .pid = 12340 + r, .host = "node1", .device = r, .device_info = "Some CPU"});
  return run;
}

TEST(PerfText, PreambleHasTheLinesThatScriptsParse) {
  EXPECT_EQ(
      text_preamble(two_ranks()),
      "# tern-tests version 0.1.0 nccl-tests-format=2.19 tern-library=0.1.0\n"
      "# Collective test starting: all_reduce_perf\n"
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 "
      "validation: 1 graph: 0 unalign: 0\n"
      "#\n"
      "# Using devices\n"
      "#  Rank  0 Group  0 Pid  12340 on      node1 device  0 [0000:00:00] Some CPU\n"
      "#  Rank  1 Group  0 Pid  12341 on      node1 device  1 [0000:00:00] Some CPU\n");
}

TEST(PerfText, PreambleNamesAnIncrementInBytes) {
  RunInfo run = two_ranks();
  run.options.step_factor = 1;
  EXPECT_NE(text_preamble(run).find("step: 1048576(bytes)"), std::string::npos);
}

TEST(PerfText, TableHeadSaysWhatAnIterationIsWhenItHoldsSeveralCalls) {
  PerfOptions options;
  options.agg_iters = 4;
  EXPECT_EQ(text_table_head(options), text_table_head({}));
  options.per_iter_timing = true;
  EXPECT_NE(text_table_head(options).find(
                "# i_*: an iteration is 4 calls in flight together; its time is divided by 4\n"),
            std::string::npos);
}

TEST(PerfText, TableHeadStandsOverTheColumns) {
  EXPECT_EQ(text_table_head({}),
            "#\n"
            "#                                                              out-of-place                     "
            "  in-place\n"
            "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time  "
            " algbw   "
            "busbw  #wrong\n"
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  "
            "(GB/s)  "
            "(GB/s)        \n");
}

RowResult row() {
  RowResult row = {.n_bytes = 1024, .count = 256, .op = "sum", .iters = 2};
  row.out_of_place = {.seconds = 12.346e-6, .alg_gb_per_s = 0.083, .bus_gb_per_s = 0.083, .n_wrong = 0};
  row.in_place = {.seconds = 11e-6, .alg_gb_per_s = 1234.5, .bus_gb_per_s = 1e7, .n_wrong = 7};
  return row;
}

TEST(PerfText, RowHasNcclTestsColumns) {
  EXPECT_EQ(text_row(row(), {}, "now"),
            "        1024           256     float     sum      -1    12.35    0.08    0.08       0    11.00  "
            "1234.5   "
            "1e+07       7\n");
}

TEST(PerfText, UncheckedRowsSayNotAvailable) {
  RowResult unchecked = row();
  unchecked.in_place.n_wrong.reset();
  EXPECT_TRUE(text_row(unchecked, {}, "").ends_with("   1e+07     N/A\n"));
}

TEST(PerfText, OptionsAddColumnsInPlace) {
  PerfOptions o;
  o.predict = o.per_iter_timing = o.report_timestamps = true;
  RowResult timed = row();
  timed.out_of_place.predicted_seconds = 10e-6;
  timed.out_of_place.rank_seconds = {{1e-6, 2e-6}, {3e-6, 1e-6}};
  EXPECT_EQ(
      text_row(timed, o, "2025-12-31 23:59:59"),
      "        1024           256     float     sum      -1    12.35    0.08    0.08      10.00       0     "
      "2.00"
      "     3.00     3.00    20.00    11.00  1234.5   1e+07       0.00       7     0.00     0.00     0.00"
      "     0.00  2025-12-31 23:59:59\n");
  const std::string head = text_table_head(o);
  const std::string text = text_row(timed, o, "2025-12-31 23:59:59");
  const size_t names_end = head.rfind('\n', head.size() - 2);
  EXPECT_EQ(head.size() - names_end - 1, text.size()) << "the unit line is as wide as a row";
}

TEST(PerfText, FooterSaysWhatWasWrong) {
  Summary summary = {.n_wrong = 0, .average_bus_gb_per_s = 1.5};
  EXPECT_EQ(text_footer(two_ranks(), summary),
            "# Out of bounds values : 0 OK\n"
            "# Avg bus bandwidth    : 1.5\n"
            "#\n"
            "# Collective test concluded: all_reduce_perf\n");
  summary = {.n_wrong = 3, .average_bus_gb_per_s = 1.5, .least_bus_gb_per_s = 2.0, .memory = "1 MB"};
  EXPECT_EQ(text_footer(two_ranks(), summary),
            "# Out of bounds values : 3 FAILED\n"
            "# Avg bus bandwidth    : 1.5 FAILED\n"
            "#\n"
            "# Collective test concluded: all_reduce_perf\n"
            "# Memory usage         : 1 MB\n");
}

TEST(PerfResult, BandwidthMayFallATenthShortOfTheOneAskedFor) {
  Summary summary = {.average_bus_gb_per_s = 0.91, .least_bus_gb_per_s = 1.0};
  EXPECT_TRUE(summary.good());
  summary.average_bus_gb_per_s = 0.89;
  EXPECT_FALSE(summary.good());
  summary.average_bus_gb_per_s = 2;
  summary.n_wrong = 1;
  EXPECT_FALSE(summary.good());
}

TEST(PerfResult, AnIterationCountsWithItsSlowestRank) {
  PlacementResult p;
  p.rank_seconds = {{1e-6, 5e-6, 2e-6}, {4e-6, 1e-6, 3e-6}};
  const IterationStats stats = iteration_stats(p);
  EXPECT_EQ(stats.times.size(), 3U);
  EXPECT_NEAR(stats.min, 3, 1e-9);
  EXPECT_NEAR(stats.max, 5, 1e-9);
  EXPECT_NEAR(stats.p50, 4, 1e-9);
  EXPECT_NEAR(stats.mean, 4, 1e-9);
}

}  // namespace
}  // namespace tern::bench
