#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/compare_options.h"
#include "bench/compare_row.h"

namespace tern::bench {
namespace {

using testing::HasSubstr;

TEST(Exercise, EveryCollectivesDataIsCheckedExactly) {
  constexpr int kRanks = 3;
  constexpr size_t kCount = 9000;
  for (const std::string_view text : kExerciseNames) {
    const Exercise exercise = *parse_exercise(text);
    std::vector<std::vector<float>> sent;
    for (int r = 0; r < kRanks; ++r) {
      const ExerciseShape shape = {.exercise = exercise, .rank = r, .n_ranks = kRanks, .count = kCount};
      sent.emplace_back(shape.n_send());
      fill(shape, sent.back());
    }
    for (int r = 1; r < kRanks; ++r) {
      const ExerciseShape shape = {.exercise = exercise, .rank = r, .n_ranks = kRanks, .count = kCount};
      std::vector<float> result;
      if (exercise == Exercise::kAllGather)
        for (const auto& part : sent) result.insert(result.end(), part.begin(), part.end());
      if (exercise == Exercise::kBroadcast) result = sent[0];
      if (exercise == Exercise::kAllToAll)
        for (const auto& part : sent)
          result.insert(result.end(), part.begin() + r * static_cast<int>(kCount),
                        part.begin() + (r + 1) * static_cast<int>(kCount));
      const size_t begin = exercise == Exercise::kReduceScatter ? static_cast<size_t>(r) * kCount : 0;
      if (result.empty())
        for (size_t i = begin; i < begin + kCount; ++i)
          result.push_back(sent[0][i] + sent[1][i] + sent[2][i]);
      ASSERT_EQ(result.size(), shape.n_recv());
      EXPECT_EQ(count_wrong(shape, result), 0U) << text << " rank " << r;
      result[result.size() / 2] += 1;
      EXPECT_EQ(count_wrong(shape, result), 1U) << text;
      std::fill(result.begin(), result.end(), -1e30F);
      EXPECT_EQ(count_wrong(shape, result), result.size()) << text;
    }
  }
}

CompareRow row() {
  CompareRow row = {.exercise = Exercise::kAllReduce,
                    .n_bytes = 65536,
                    .n_ranks = 4,
                    .shared = true,
                    .tern = {},
                    .peers = {}};
  row.tern = {.name = "tern", .seconds = {2e-6, 1e-6, 3e-6}};
  row.peers = {{.name = "openmpi", .seconds = {6e-6, 5e-6, 4e-6, 7e-6}}, {.name = "gloo", .offered = false}};
  return row;
}

TEST(CompareRow, MedianSpreadAndRatio) {
  EXPECT_DOUBLE_EQ(row().tern.median(), 2e-6);
  EXPECT_DOUBLE_EQ(row().tern.spread_percent(), 100);
  EXPECT_DOUBLE_EQ(row().peers[0].median(), 5.5e-6);
  EXPECT_DOUBLE_EQ(row().ratio(), 2.75);
  EXPECT_EQ(row().best_peer()->name, "openmpi");
  CompareRow alone = row();
  alone.peers.clear();
  EXPECT_EQ(alone.ratio(), 0);
}

TEST(CompareRow, LinesStandUnderTheirHead) {
  const CompareSetting setting = {
      .versions = {"tern 0.1.0"}, .command = "compare", .repetitions = 5, .n_cores = 2};
  const std::string head = compare_head(setting, {"openmpi", "gloo"});
  const std::string line = compare_line(row());
  EXPECT_EQ(line,
            "all_reduce           64k      4  tern::allocate         2.00  100%         5.50   55%           "
            " -      "
            "     2.75  openmpi        0\n");
  EXPECT_EQ(head.size() - head.rfind('\n', head.size() - 2) - 1, line.size());
}

TEST(CompareRow, JsonHasTheFactsOfEveryRow) {
  const auto j = nlohmann::json::parse(compare_json({.versions = {}, .command = "compare"}, {row()}));
  const auto& r = j["rows"][0];
  EXPECT_EQ(r["collective"], "all_reduce");
  EXPECT_EQ(r["size"], 65536);
  EXPECT_EQ(r["ranks"], 4);
  EXPECT_EQ(r["memory"], "tern::allocate");
  EXPECT_NEAR(r["tern_us"], 2, 1e-9);
  EXPECT_NEAR(r["ratio"], 2.75, 1e-9);
  EXPECT_EQ(r["best_peer"], "openmpi");
  EXPECT_EQ(r["peers"][0]["repetitions_us"].size(), 4U);
  EXPECT_TRUE(r["peers"][1]["us"].is_null());
}

Result<CompareCommand> parse(std::vector<const char*> args) {
  args.insert(args.begin(), "compare");
  return parse_compare_options(args, {"openmpi", "gloo"});
}

TEST(CompareOptions, ListsAndSizesAreRead) {
  const auto command = parse({"--ranks", "2,3", "--collectives", "all_reduce,broadcast", "--min", "1K",
                              "--max", "20K", "--peers", "gloo"});
  ASSERT_TRUE(command.ok()) << command.error().message;
  EXPECT_EQ(command->options.ranks, (std::vector<int>{2, 3}));
  EXPECT_EQ(command->options.exercises, (std::vector<Exercise>{Exercise::kAllReduce, Exercise::kBroadcast}));
  EXPECT_EQ(command->options.peers, std::vector<std::string>{"gloo"});
  EXPECT_EQ(compare_sizes(command->options), (std::vector<uint64_t>{1024, 4096, 16384}));
}

TEST(CompareOptions, ByDefaultEverythingThatWasBuiltIsCompared) {
  const auto command = parse({});
  ASSERT_TRUE(command.ok());
  EXPECT_EQ(command->options.peers.size(), 2U);
  EXPECT_EQ(command->options.exercises.size(), std::size(kExerciseNames));
  EXPECT_GE(command->options.repetitions, 5);
}

TEST(CompareOptions, WrongFlagsAreOneSentence) {
  EXPECT_THAT(parse({"--peers", "nccl"}).error().message, HasSubstr("this build has openmpi, gloo"));
  EXPECT_THAT(parse({"--collectives", "barrier"}).error().message, HasSubstr("barrier"));
  EXPECT_THAT(parse({"--min", "2M", "--max", "1M"}).error().message, HasSubstr("--min 2M"));
  EXPECT_THAT(parse({"--ranks", "0"}).error().message, HasSubstr("--ranks"));
}

}  // namespace
}  // namespace tern::bench
