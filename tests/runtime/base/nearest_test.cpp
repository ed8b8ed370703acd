#include "runtime/base/nearest.h"

#include <gtest/gtest.h>

#include <array>

namespace tern {
namespace {

TEST(Nearest, DistanceCountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("codec", "cdoec"), 1U);
  EXPECT_EQ(edit_distance("ring", "ring"), 0U);
}

TEST(Nearest, FindsTheClosestNameAndTheFirstOfEquals) {
  const std::array<std::string_view, 3> names = {"train_batch_size", "gradient_clipping", "steps"};
  EXPECT_EQ(nearest("train_batchsize", names), "train_batch_size");
  EXPECT_EQ(nearest("step", names), "steps");
  const std::array<std::string_view, 2> equals = {"aa", "bb"};
  EXPECT_EQ(nearest("ab", equals), "aa");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Nearest, SaysNothingWhereNoNameIsNear) {
  const std::array<std::string_view, 4> names = {"model", "source", "communication", "ranks"};
  EXPECT_EQ(nearest("colour", names), "");
  EXPECT_EQ(nearest("x", names), "");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(did_you_mean("colour", names), "");
  EXPECT_EQ(did_you_mean("rank", names), "did you mean \"ranks\"? ");
}

TEST(Nearest, TakesTheBeginningOfANameForTheName) {
  const std::array<std::string_view, 3> names = {"model", "communication", "common"};
  EXPECT_EQ(nearest("communic", names), "communication");
  EXPECT_EQ(nearest("comms", std::span(names).first(2)), "communication");
  EXPECT_EQ(nearest("co", names), "");
  EXPECT_EQ(nearest("comm", names), "common") << "of equals the shortest";
}

}  // namespace
}  // namespace tern
