#include "tools/tern_sim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/tools/tern_says.h"
#include "tools/built_in_clusters.h"
#include "tools/step_sim.h"

namespace tern::tools {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// The answer to `tern sim args...` as JSON.
json sim(std::vector<const char*> args) {
  const std::string file = fmt::format("{}tern_sim_test.{}.json", testing::TempDir(), getpid());
  args.insert(args.begin(), "sim");
  args.insert(args.end(), {"--json", file.c_str()});
  const Ran ran = tern_says(args);
  EXPECT_EQ(ran.status, 0) << ran.err;
  std::ifstream in(file);
  json answer = json::parse(in);
  std::filesystem::remove(file);
  return answer;
}

TEST(TernSim, TextNamesTimeBandwidthPlanLinksAndWhatLimits) {
  const Ran ran = tern_says({"sim", "--cluster", "a100x8-4nic-100g", "--ranks", "32", "--size", "64M"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  for (const char* part :
       {"all_reduce of 64MiB over 32 ranks on a100x8-4nic-100g", "algorithm", "segments", "codec", "time",
        "busbw", "limited by", "gpu nvlink", "node nic", "node 0 nic 0 out", "Figures: "})
    EXPECT_THAT(ran.out, HasSubstr(part));
}

TEST(TernSim, OneThousandRanksFoldToTheKindsOfOneOrFewNodes) {
  const json j = sim({"--cluster", "a100x8-8nic-200g", "--size", "1GiB", "--codec", "none"});
  EXPECT_EQ(j["ranks"], 1024);
  EXPECT_LE(j["rank_classes"], 32);
  EXPECT_GT(j["busbw_gb_per_s"], 23.5);  // more than one NIC: the ranks of a node use all of them
  EXPECT_LT(j["busbw_gb_per_s"], 8 * 23.5);
  EXPECT_EQ(j["codec"], "none");
}

TEST(TernSim, AutoIsNoSlowerThanAnyAlgorithmItCouldChoose) {
  const std::vector<const char*> call = {"--cluster", "two-sites-ethernet", "--size", "4M"};
  const double best = sim(call)["seconds"];
  const SimQuestion question{.cluster = *load_cluster("two-sites-ethernet", 0)};
  for (const std::string& algorithm : algorithm_names(question)) {
    for (const char* codec : {"none", "q8"}) {
      std::vector<const char*> args = call;
      args.insert(args.end(), {"--algorithm", algorithm.c_str(), "--codec", codec});
      args.insert(args.begin(), "sim");
      const Ran ran = tern_says(args);
      if (ran.status != 0) continue;  // what cannot be encoded
      args.erase(args.begin());
      EXPECT_LE(best, sim(args)["seconds"].get<double>() * (1 + 1e-9)) << algorithm << " " << codec;
    }
  }
}

TEST(TernSim, BetweenSitesTheWanIsTheLimitAndTwoLevelsSpareIt) {
  const json flat =
      sim({"--cluster", "two-sites-ethernet", "--size", "256M", "--algorithm", "direct", "--codec", "none"});
  EXPECT_THAT(flat["limit"].get<std::string>(), HasSubstr("wan"));
  const json best = sim({"--cluster", "two-sites-ethernet", "--size", "256M", "--codec", "none"});
  EXPECT_LT(best["links"][1]["bytes"].get<double>(), 0.2 * flat["links"][1]["bytes"].get<double>());
}

TEST(TernSim, ASegmentSizeCanBeAskedFor) {
  const json j = sim({"--cluster", "ethernet-1g", "--ranks", "8", "--collective", "broadcast", "--size",
                      "16M", "--codec", "none", "--algorithm", "tree@1M"});
  EXPECT_EQ(j["algorithm"], "tree");
  EXPECT_EQ(j["segment_bytes"], 1 << 20);
}

TEST(TernSim, EveryBuiltInClusterAnswersAndIsListed) {
  const Ran list = tern_says({"sim", "--list"});
  EXPECT_EQ(list.status, 0);
  EXPECT_GE(built_in_clusters().size(), 12U);
  for (const BuiltInCluster& cluster : built_in_clusters()) {
    const std::string name(cluster.name);
    EXPECT_THAT(list.out, HasSubstr(name));
    EXPECT_GT(sim({"--cluster", name.c_str(), "--ranks", "16", "--size", "1M"})["seconds"].get<double>(), 0)
        << name;
  }
}

TEST(TernSim, WrongQuestionsAreOneSentenceWithTheValue) {
  struct Wrong {
    std::vector<const char*> args;
    const char* says;
  };
  const std::vector<Wrong> cases = {
      {{"sim"}, "--cluster"},
      {{"sim", "--cluster", "a100x8-8nic"}, "did you mean \"a100x8-8nic-200g\""},
      {{"sim", "--cluster", "/nowhere/c.json"}, "/nowhere/c.json"},
      {{"sim", "--cluster", "ethernet-1g", "--ranks", "16385"}, "--ranks"},
      {{"sim", "--cluster", "ethernet-1g", "--size", "big"}, "big"},
      {{"sim", "--cluster", "ethernet-1g", "--algorithm", "rng"}, "rng"},
      {{"sim", "--cluster", "ethernet-1g", "--codec", "q9"}, "q9"},
      {{"sim", "--cluster", "ethernet-1g", "--collective", "all_reduse"}, "all_reduse"},
      {{"sim", "--cluster", "ethernet-1g", "--collective", "broadcast", "--root", "64"}, "root 64"},
      {{"sim", "--cluster", "ethernet-1g", "--root", "1"},
       "all_reduce has no root; those that have: broadcast"},
      {{"sim", "--cluster", "ethernet-1g", "--step", "llama3-70b"}, "nodes of a multiple of 8 ranks"},
      {{"sim", "--cluster", "a100x8-8nic-200g", "--step", "gpt"}, "llama3-70b"},
      {{"sim", "--cluster", "ethernet-1g", "--ranks", "4", "--json", "/nowhere/x.json"}, "/nowhere/x.json"}};
  for (const Wrong& wrong : cases) {
    const Ran ran = tern_says(wrong.args);
    EXPECT_NE(ran.status, 0) << wrong.says << ran.out;
    EXPECT_THAT(ran.err, HasSubstr(wrong.says));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST(TernSim, WrongInputAndAMissingFileEndAlike) {
  for (const char* cluster : {"/nowhere/c.json", "no-such-cluster"})
    EXPECT_EQ(tern_says({"sim", "--cluster", cluster}).status, 2) << cluster;
}

TEST(TernSim, ABarrierIsOfNoSizeAndBytesAreInOneUnit) {
  const Ran barrier = tern_says({"sim", "--cluster", "ethernet-1g", "--collective", "barrier"});
  EXPECT_THAT(barrier.out, testing::StartsWith("barrier over 64 ranks on ethernet-1g\n"));
  const Ran ran =
      tern_says({"sim", "--cluster", "ethernet-1g", "--ranks", "8", "--size", "1G", "--codec", "none"});
  EXPECT_THAT(ran.out, testing::AllOf(HasSubstr("GiB"), testing::Not(HasSubstr(" GB "))));
}

TEST(StepSim, WhatBackwardDoesNotHideIsExposed) {
  EXPECT_DOUBLE_EQ(exposed_after(8, {4, {1}}), 1);           // all but the last bucket
  EXPECT_DOUBLE_EQ(exposed_after(8, {4, {3}}), 2 + 12 - 8);  // the first is ready at 2, then without a pause
  EXPECT_DOUBLE_EQ(exposed_after(8, {4, {1, 1}}), 2);        // through both levels
  EXPECT_DOUBLE_EQ(exposed_after(0, {4, {1, 2}}), 1 + 8);    // the slower level sets the pace
  EXPECT_DOUBLE_EQ(exposed_before(8, {4, {1}}), 1);          // the first part waits, the others do not
  EXPECT_DOUBLE_EQ(exposed_before(8, {4, {3}}), 12 + 2 - 8);
}

TEST(StepSim, OverlapAndCodecLessenTheShareOfCommunication) {
  for (const char* model : {"llama3-70b", "deepseek-moe-16b"}) {
    const json j = sim({"--step", model, "--cluster", "a100x8-4nic-100g", "--ranks", "64"});
    ASSERT_EQ(j["variants"].size(), 4U);
    const auto share = [&](int i) {
      return j["variants"][static_cast<size_t>(i)]["communication_share"].get<double>();
    };
    EXPECT_GT(share(0), share(1)) << model;
    EXPECT_GT(share(0), share(2)) << model;
    EXPECT_GE(share(1), share(3)) << model;
    EXPECT_LT(share(3), 0.5 * share(0)) << model;
    EXPECT_THAT(j["assumptions"].get<std::string>(), HasSubstr("micro-batches"));
  }
}

TEST(StepSim, GradientsOfTwiceTheBytesTakeTwiceAsLong) {
  const auto reduce = [](const char* gradient) {
    const json j = sim(
        {"--step", "llama3-70b", "--cluster", "a100x8-4nic-100g", "--ranks", "64", "--gradient", gradient});
    return j["variants"][0]["reduce_seconds"].get<double>();
  };
  EXPECT_NEAR(reduce("fp32"), 2 * reduce("bf16"), 0.02 * reduce("fp32"));
}

}  // namespace
}  // namespace tern::tools
