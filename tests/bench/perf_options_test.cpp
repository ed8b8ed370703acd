#include "bench/perf_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/dtype.h"

namespace tern::bench {
namespace {

using testing::HasSubstr;

Result<PerfCommand> parse(std::vector<const char*> args) {
  args.insert(args.begin(), "all_reduce_perf");
  return parse_perf_options(args);
}

TEST(PerfOptions, DefaultsAreNcclTests) {
  const auto command = parse({});
  ASSERT_TRUE(command.ok());
  const PerfOptions& o = command->options;
  EXPECT_EQ(o.min_bytes, 32U << 20);
  EXPECT_EQ(o.max_bytes, 32U << 20);
  EXPECT_EQ(o.step_bytes, 1U << 20);
  EXPECT_EQ(o.iters, 20);
  EXPECT_EQ(o.warmup_iters, 1);
  EXPECT_EQ(o.check, 1);
  EXPECT_EQ(o.average, Average::kMean);
  EXPECT_EQ(o.local_register, 1);
  EXPECT_TRUE(command->without_effect.empty());
}

TEST(PerfOptions, ShortFlagsAreReadAsNcclTestsReadsThem) {
  const auto command = parse({"-b", "8", "-e", "128M", "-f", "2", "-t", "2", "-g", "3",      "-n", "5",
                              "-w", "4", "-m", "2",    "-N", "3", "-c", "0", "-o", "max",    "-d", "half",
                              "-r", "1", "-T", "9",    "-C", "1", "-S", "1", "-J", "x.json", "-a", "3",
                              "-R", "0", "-M", "1",    "-u", "1", "-I", "1", "-K", "2"});
  ASSERT_TRUE(command.ok()) << command.error().message;
  const PerfOptions& o = command->options;
  EXPECT_EQ(o.min_bytes, 8U);
  EXPECT_EQ(o.max_bytes, 128U << 20);
  EXPECT_EQ(o.step_factor, 2);
  EXPECT_EQ(o.n_ranks_in_process(), 6);
  EXPECT_EQ(o.iters, 5);
  EXPECT_EQ(o.warmup_iters, 4);
  EXPECT_EQ(o.agg_iters, 2);
  EXPECT_EQ(o.run_cycles, 3);
  EXPECT_EQ(o.check, 0);
  EXPECT_EQ(o.op, "max");
  EXPECT_EQ(o.datatype, "half");
  EXPECT_EQ(o.root, 1);
  EXPECT_EQ(o.timeout_s, 9);
  EXPECT_TRUE(o.report_cputime && o.report_timestamps && o.memory_report && o.per_iter_timing);
  EXPECT_EQ(o.json_file, "x.json");
  EXPECT_EQ(o.average, Average::kMax);
  EXPECT_FALSE(o.shared_memory());
  EXPECT_EQ(o.unalign, 1);
  EXPECT_EQ(o.per_iter_skip, 2);
}

TEST(PerfOptions, LongFlagsAndTernsOwn) {
  const auto command =
      parse({"--minbytes", "1K", "--maxbytes=1M", "--stepbytes", "64K", "--codec", "topk:k=32", "--algorithm",
             "ring", "--transport", "shm", "--json", "a.json", "--predict", "1"});
  ASSERT_TRUE(command.ok()) << command.error().message;
  const PerfOptions& o = command->options;
  EXPECT_EQ(o.step_bytes, 64U << 10);
  EXPECT_EQ(o.codec, "topk:k=32");
  EXPECT_EQ(o.algorithm, "ring");
  EXPECT_EQ(o.transport, "shm");
  EXPECT_EQ(o.json_file, "a.json");
  EXPECT_TRUE(o.predict);
}

TEST(PerfOptions, FlagsThatNeedAGpuAreAcceptedAndNamed) {
  const auto command = parse({"-G", "1", "-x", "2", "-D", "0", "-V", "16", "-y", "1", "-z", "1", "-p", "1"});
  ASSERT_TRUE(command.ok()) << command.error().message;
  EXPECT_THAT(command->without_effect,
              testing::UnorderedElementsAre("-G,--cudagraph", "-x,--cta_policy", "-V,--device_cta_count",
                                            "-y,--stream_null", "-z,--blocking", "-p,--parallel_init"));
}

struct Wrong {
  std::vector<const char*> args;
  const char* says;
};

TEST(PerfOptions, WrongFlagsAreOneSentenceWithTheFlagAndTheValue) {
  const std::vector<Wrong> cases = {
      {{"-b", "tiny"}, "tiny"},
      {{"--bogus"}, "--bogus"},
      {{"-n", "0"}, "iters"},
      {{"-n", "many"}, "many"},
      {{"-b", "2M", "-e", "1M"}, "--minbytes 2M is above --maxbytes 1M"},
      {{"-b", "0", "-e", "1M", "-f", "2"}, "--minbytes 0"},
      {{"-b", "1", "-e", "2", "-i", "0"}, "--stepbytes 0"},
      {{"-J", "out.txt"}, ".json"},
      {{"-I", "1", "-K", "20"}, "--per_iter_skip 20"},
      {{"-a", "4"}, "average"},
      {{"-R", "3"}, "local_register"},
      {{"-n"}, "--iters needs a value"},
      {{"-n", "3", "-n"}, "--iters needs a value"},
      {{"-n", "-1"}, "--iters: Value -1 not in range 1 to"},
      {{"-n", "99999999999"}, "--iters: Value 99999999999 not in range"},
      {{"-b", "-5"}, "--minbytes: \"-5\" is not a size"},
      {{"-b", "99999999999999999999"}, "size 99999999999999999999 is above 2^64"},
      {{"-e", "2T"}, "--maxbytes 2T is above 1T"},
      {{"-f", "0"}, "--stepfactor"},
      {{"-i", "-3"}, "--stepbytes"},
      {{"-T", "-1"}, "--timeout"},
      {{"-g", "0"}, "--ngpus"},
      {{"extra"}, "extra"}};
  for (const Wrong& wrong : cases) {
    const auto command = parse(wrong.args);
    ASSERT_FALSE(command.ok()) << wrong.args[0];
    EXPECT_EQ(command.error().code, Code::kInvalidArgument);
    EXPECT_THAT(command.error().message, HasSubstr(wrong.says));
    EXPECT_EQ(command.error().message.find('\n'), std::string::npos) << command.error().message;
  }
}

TEST(PerfOptions, TheLastOfAFlagThatComesTwiceCounts) {
  const auto command =
      parse({"-n",  "3",  "-b", "1K", "--iters", "5",  "-b",      "2K", "-o",      "max", "-o",
             "min", "-C", "1",  "-C", "0",       "-G", "1",       "-G", "0",       "-T",  "1",
             "-T",  "2",  "-a", "1",  "-a",      "3",  "--codec", "q8", "--codec", "none"});
  ASSERT_TRUE(command.ok()) << command.error().message;
  EXPECT_EQ(command->options.iters, 5);
  EXPECT_EQ(command->options.min_bytes, 2U << 10);
  EXPECT_EQ(command->options.op, "min");
  EXPECT_FALSE(command->options.report_cputime);
  EXPECT_EQ(command->options.timeout_s, 2);
  EXPECT_EQ(command->options.average, Average::kMax);
  EXPECT_EQ(command->options.codec, "none");
  EXPECT_TRUE(command->without_effect.empty());
}

TEST(PerfOptions, HelpListsEveryFlag) {
  const auto command = parse({"-h"});
  ASSERT_TRUE(command.ok());
  for (const char* flag :
       {"--nthreads", "--maxbytes", "--per_iter_skip", "--codec", "--device_cta_count", "--predict"})
    EXPECT_THAT(command->help, HasSubstr(flag));
}

TEST(PerfOptions, TheHelpNamesEveryOperator) {
  const auto command = parse({"--help"});
  for (const std::string_view op : kOpNames) EXPECT_NE(command->help.find(op), std::string::npos) << op;
}

}  // namespace
}  // namespace tern::bench
