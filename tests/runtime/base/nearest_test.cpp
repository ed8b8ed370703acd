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

}  // namespace
}  // namespace tern
