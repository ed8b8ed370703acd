#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "runtime/base/config.h"
#include "runtime/codec/codec.h"
#include "runtime/plan/registry.h"
#include "runtime/transport/transport.h"
#include "tests/tools/tern_says.h"
#include "tools/text_table.h"

namespace tern::tools {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(TernInfo, ListsEveryRowOfEveryRegistry) {
  const Ran ran = tern_says({"info"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  for (const Setting& s : kSettings) EXPECT_THAT(ran.out, HasSubstr(std::string(s.variable)));
  for (const Algorithm& a : algorithms()) EXPECT_THAT(ran.out, HasSubstr(std::string(a.summary)));
  for (const CodecInfo& c : codecs()) EXPECT_THAT(ran.out, HasSubstr("  " + std::string(c.name)));
  for (const TransportInfo& t : transports()) EXPECT_THAT(ran.out, HasSubstr(std::string(t.summary)));
}

TEST(TernInfo, SaysWhereASettingComesFrom) {
  ::setenv("TERN_TIMEOUT", "7", 1);
  const json j = json::parse(tern_says({"info", "--json"}).out);
  ::unsetenv("TERN_TIMEOUT");
  int n_found = 0;
  for (const json& setting : j["settings"]) {
    if (setting["name"] != "TERN_TIMEOUT") continue;
    ++n_found;
    EXPECT_EQ(setting["value"], "7");
    EXPECT_EQ(setting["default"], "30");
    EXPECT_EQ(setting["from"], "environment");
  }
  EXPECT_EQ(n_found, 1);
}

TEST(TernInfo, ASecretIsNotShown) {
  ::setenv("TERN_SECRET", "swordfish", 1);
  const Ran ran = tern_says({"info"});
  ::unsetenv("TERN_SECRET");
  EXPECT_EQ(ran.out.find("swordfish"), std::string::npos);
}

TEST(TernPlan, ShowsVerifiedStepsOfTheRankAskedFor) {
  const Ran ran =
      tern_says({"plan", "show", "all_reduce", "--ranks", "4", "--algorithm", "ring", "--rank", "2"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("ring, verified on all ranks"));
  EXPECT_THAT(ran.out, HasSubstr("to rank 3"));
  EXPECT_THAT(ran.out, HasSubstr("from rank 1"));
}

TEST(TernPlan, ShowsEveryAlgorithmOfEveryCollective) {
  for (const Algorithm& a : algorithms()) {
    for (int c = 0; c < kNumCollectives; ++c) {
      const auto collective = static_cast<Collective>(c);
      if (!a.supports({.collective = collective, .n_ranks = 3})) continue;
      const Ran ran = tern_says(
          {"plan", "show", name(collective).data(), "--ranks", "3", "--algorithm", a.name.data(), "--json"});
      ASSERT_EQ(ran.status, 0) << a.name << " " << name(collective) << ran.err;
      const json j = json::parse(ran.out);
      EXPECT_EQ(j["algorithm"], a.name);
      EXPECT_EQ(j["plans"].size(), 3U);
    }
  }
}

TEST(TernPlan, WithACodecStepsEncode) {
  const Ran ran = tern_says({"plan", "show", "all_reduce", "--ranks", "4", "--codec", "q8"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("encode "));
  EXPECT_THAT(ran.out, HasSubstr("decode"));
}

TEST(TernWhy, OffersHierarchicalPlansAcrossHosts) {
  for (const char* hosts : {"1", "2"}) {
    const Ran ran = tern_says({"why", "all_reduce", "--ranks", "8", "--hosts", hosts, "--size", "4MiB"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out.find("hierarchical") != std::string::npos, hosts[0] == '2') << ran.out;
  }
  const Ran shown = tern_says({"plan", "show", "all_reduce", "--ranks", "6", "--hosts", "3", "--algorithm",
                               "hierarchical", "--rank", "0"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("hierarchical, verified on all ranks"));
}

TEST(TernWhy, MarksTheFastestCandidate) {
  const Ran ran = tern_says({"why", "all_reduce", "--ranks", "4", "--size", "4MiB", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const json j = json::parse(ran.out);
  EXPECT_EQ(j["bytes"], 4 << 20);
  EXPECT_EQ(j["reason"], "least predicted time");
  ASSERT_GT(j["candidates"].size(), 2U);
  EXPECT_EQ(j["candidates"][0]["chosen"], true);
  for (size_t i = 1; i < j["candidates"].size(); ++i) {
    EXPECT_EQ(j["candidates"][i]["chosen"], false);
    EXPECT_LE(j["candidates"][i - 1]["predicted_us"], j["candidates"][i]["predicted_us"]);
  }
}

TEST(TernWhy, TextShowsTheSpeedsAndTheCandidates) {
  const Ran ran =
      tern_says({"why", "all_reduce", "--ranks", "8", "--hosts", "2", "--size", "1M", "--codec", "q8"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  for (const char* part : {"all_reduce of 1MiB over 8 ranks on 2 hosts, codec q8", "link in the host",
                           "link between hosts", "of the dense bytes", "predicted us", "* chosen:"})
    EXPECT_THAT(ran.out, HasSubstr(part));
}

TEST(TernWhy, ShowsWhatAutoWeighs) {
  const Ran far = tern_says({"why", "all_reduce", "--ranks", "4", "--hosts", "4", "--size", "64M", "--codec",
                             "auto:max_loss_gap=0.05", "--json"});
  ASSERT_EQ(far.status, 0) << far.err;
  const json answer = json::parse(far.out);
  EXPECT_EQ(answer["codec_reason"], "pays");
  const double dense = answer["dense_us"];
  EXPECT_LT(answer["codecs"][0]["predicted_us"], 0.9 * dense);
  double last = 0;
  for (const json& codec : answer["codecs"]) {
    EXPECT_LE(codec["loss_gap_percent"], 0.05) << codec;
    EXPECT_GE(codec["predicted_us"], last);
    last = codec["predicted_us"];
  }
  const Ran near = tern_says({"why", "all_reduce", "--ranks", "4", "--size", "64M", "--codec", "auto"});
  EXPECT_THAT(near.out, HasSubstr("* codec none: does not pay"));
  const Ran hidden = tern_says({"why", "all_reduce", "--ranks", "4", "--hosts", "4", "--size", "64M",
                                "--codec", "auto", "--hidden-us", "1e9"});
  EXPECT_THAT(hidden.out, HasSubstr("* codec none: hidden"));
}

TEST(TernWhy, ARuleDecidesAgainstThePrediction) {
  const json fastest = json::parse(tern_says({"why", "all_reduce", "--ranks", "4", "--json"}).out);
  const std::string first = fastest["candidates"][0]["algorithm"];
  std::string other;
  for (const json& c : fastest["candidates"])
    if (c["algorithm"] != first) other = c["algorithm"];
  ASSERT_FALSE(other.empty());
  const json ruled = json::parse(
      tern_says({"why", "all_reduce", "--ranks", "4", "--algorithm", other.c_str(), "--json"}).out);
  EXPECT_EQ(ruled["reason"], "rule");
  for (const json& c : ruled["candidates"]) {
    EXPECT_TRUE(c["chosen"] == false || c["algorithm"] == other) << c;
  }
}

TEST(TernCalibrate, WritesAFileThatThePlannerReads) {
  const std::string file = fmt::format("{}tern_test.{}.json", testing::TempDir(), getpid());
  const Ran ran = tern_says({"calibrate", "--out", file.c_str()});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("shared memory"));
  ::setenv("TERN_CALIBRATION", file.c_str(), 1);
  const Ran why = tern_says({"why", "all_reduce", "--ranks", "4", "--json"});
  ::unsetenv("TERN_CALIBRATION");
  std::remove(file.c_str());
  ASSERT_EQ(why.status, 0) << why.err;
  const json usual = json::parse(tern_says({"why", "all_reduce", "--ranks", "4", "--json"}).out);
  EXPECT_NE(json::parse(why.out)["cost_model"], usual["cost_model"]);
}

TEST(TernCalibrate, AFileThatCannotBeReadOrWrittenIsNamed) {
  EXPECT_THAT(tern_says({"calibrate", "--out", "/nowhere/x.json"}).err, HasSubstr("/nowhere/x.json"));
  ::setenv("TERN_CALIBRATION", "/nowhere/speeds.json", 1);
  const Ran why = tern_says({"why", "all_reduce", "--ranks", "4"});
  ::unsetenv("TERN_CALIBRATION");
  EXPECT_NE(why.status, 0);
  EXPECT_THAT(why.err, HasSubstr("/nowhere/speeds.json"));
}

TEST(Tern, WrongQuestionsAreOneSentenceWithTheValue) {
  struct Wrong {
    std::vector<const char*> args;
    const char* says;
  };
  const std::vector<Wrong> cases = {
      {{"why", "all_reduse", "--ranks", "4"}, "all_reduse"},
      {{"why", "all_reduce"}, "--ranks"},
      {{"why", "all_reduce", "--ranks", "0"}, "--ranks"},
      {{"why", "all_reduce", "--ranks", "4", "--size", "big"}, "big"},
      {{"why", "all_reduce", "--ranks", "1025"}, "--ranks 1025 is above 1024"},
      {{"plan", "show", "all_reduce", "--ranks", "2049", "--algorithm", "tree"},
       "--ranks 2049 is above 2048"},
      {{"why", "all_reduce", "--ranks", "4", "--codec", "q9"}, "q9"},
      {{"why", "all_reduce", "--ranks", "4", "--hosts", "5"}, "--hosts 5"},
      {{"plan", "show", "all_reduce", "--ranks", "4", "--rank", "4"}, "--rank 4"},
      {{"plan", "show", "broadcast", "--ranks", "4", "--root", "7"}, "--root 7"},
      {{"why", "all_reduce", "--ranks", "4", "--root", "1"}, "all_reduce has no root"},
      {{"plan", "show", "all_reduce", "--ranks", "4", "--algorithm", "rng"}, "rng"},
      {{"frobnicate"}, "frobnicate"},
      {{"plan", "hide"}, "hide"},
      {{}, "say what to do"},
      {{"plan"}, "say what to do"}};
  for (const Wrong& wrong : cases) {
    const Ran ran = tern_says(wrong.args);
    EXPECT_EQ(ran.status, 2) << wrong.says << ran.out;
    EXPECT_THAT(ran.err, HasSubstr(wrong.says));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST(Tern, HelpOfASubcommandNamesItsFlags) {
  const Ran ran = tern_says({"why", "--help"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.out, HasSubstr("--hosts"));
}

TEST(Tern, UsageLinesAreWhatOneTypes) {
  EXPECT_THAT(tern_says({"--help"}).out, HasSubstr("Usage: tern "));
  EXPECT_THAT(tern_says({"info", "--help"}).out, HasSubstr("Usage: tern info "));
  EXPECT_THAT(tern_says({"why", "--help"}).out, HasSubstr("Usage: tern why "));
  EXPECT_THAT(tern_says({"plan", "--help"}).out, HasSubstr("Usage: tern plan "));
  EXPECT_THAT(tern_says({"plan", "show", "--help"}).out, HasSubstr("Usage: tern plan show "));
}

TEST(Tern, TheLastOfAFlagThatComesTwiceCounts) {
  const Ran ran = tern_says({"why", "all_reduce", "--ranks", "4", "--ranks", "2", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out)["ranks"], 2);
}

TEST(TextTable, NumbersAreRightAligned) {
  EXPECT_EQ(text_table({{"name", "us", "note"}, {"a", "9.5", "x"}, {"long name", "10", ""}}),
            "name        us  note\n"
            "a          9.5  x\n"
            "long name   10\n");
}

}  // namespace
}  // namespace tern::tools
