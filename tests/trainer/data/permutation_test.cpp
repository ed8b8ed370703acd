#include "trainer/data/permutation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace tern::trainer {
namespace {

TEST(Permutation, IsABijectionForEverySize) {
  for (const uint64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 100, 255, 256, 257, 1000, 4097}) {
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      const Permutation order(n, 42, epoch);
      std::vector<bool> seen(n);
      for (uint64_t i = 0; i < n; ++i) {
        const uint64_t to = order(i);
        ASSERT_LT(to, n);
        ASSERT_FALSE(seen[to]) << "n " << n << " epoch " << epoch << " position " << i;
        seen[to] = true;
      }
    }
  }
}

TEST(Permutation, SeedsAndEpochsGiveOtherOrders) {
  constexpr uint64_t kN = 1000;
  const auto n_equal = [](const Permutation& a, const Permutation& b) {
    int n = 0;
    for (uint64_t i = 0; i < kN; ++i) n += a(i) == b(i) ? 1 : 0;
    return n;
  };
  EXPECT_LT(n_equal(Permutation(kN, 1, 0), Permutation(kN, 2, 0)), 20);
  EXPECT_LT(n_equal(Permutation(kN, 1, 0), Permutation(kN, 1, 1)), 20);
  EXPECT_EQ(n_equal(Permutation(kN, 1, 5), Permutation(kN, 1, 5)), 1000);
}

TEST(Permutation, NeighboursAreSpreadOverTheWholeRange) {
  constexpr uint64_t kN = 10000;
  const Permutation order(kN, 3, 0);
  double sum = 0;
  for (uint64_t i = 0; i + 1 < kN; ++i) {
    sum += std::abs(static_cast<double>(order(i)) - static_cast<double>(order(i + 1)));
  }
  EXPECT_NEAR(sum / (kN - 1) / kN, 1.0 / 3.0, 0.02);  // the mean distance of two uniform places
}

}  // namespace
}  // namespace tern::trainer
