#include "runtime/base/philox.h"

#include <gtest/gtest.h>

#include <set>

namespace tern {
namespace {

// Vectors of the authors' Random123 library (philox4x32, 10 rounds).
static_assert(philox4x32({0, 0, 0, 0}, {0, 0}) ==
              PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
              PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST(Philox, DrawingInOrderEqualsRandomAccess) {
  Philox stream(42, 7);
  for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(stream.next(), Philox(42, 7).at(i)) << i;
  for (const uint64_t start : {0U, 1U, 3U, 4U, 97U}) {
    Philox entered(42, 7);
    entered.seek(start);
    EXPECT_EQ(entered.position(), start);
    for (uint64_t i = start; i < start + 9; ++i)
      EXPECT_EQ(entered.next(), Philox(42, 7).at(i)) << start << " " << i;
  }
}

TEST(Philox, SeedsAndStreamsDiffer) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    for (uint64_t stream = 0; stream < 30; ++stream) seen.insert(Philox(seed, stream).next64());
  }
  EXPECT_EQ(seen.size(), 900U);
  EXPECT_NE(Philox(0, uint64_t{1} << 32).at(0), Philox(0, 0).at(0));
  EXPECT_NE(Philox(uint64_t{1} << 32).at(0), Philox(0).at(0));
}

TEST(Philox, UniformAndNormalHaveTheirMoments) {
  constexpr int kCount = 200000;
  Philox stream(1);
  double sum = 0;
  double normal_sum = 0;
  double normal_squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const float u = stream.uniform();
    ASSERT_TRUE(u >= 0.0F && u < 1.0F);
    sum += u;
    const double z = stream.normal();
    normal_sum += z;
    normal_squares += z * z;
  }
  // Five standard errors; the stream is fixed, so this is no matter of luck from run to run.
  EXPECT_NEAR(sum / kCount, 0.5, 5 * 0.2887 / std::sqrt(kCount));
  EXPECT_NEAR(normal_sum / kCount, 0.0, 5 / std::sqrt(kCount));
  EXPECT_NEAR(normal_squares / kCount, 1.0, 5 * std::sqrt(2.0 / kCount));
}

TEST(Philox, BelowCoversItsRangeEvenly) {
  Philox stream(3);
  std::array<int, 7> counts = {};
  for (int i = 0; i < 70000; ++i) ++counts.at(stream.below(7));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
  EXPECT_EQ(stream.below(1), 0U);
}

}  // namespace
}  // namespace tern
