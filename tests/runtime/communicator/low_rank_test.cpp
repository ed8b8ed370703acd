// PowerSGD: the same bits on all ranks, exact for matrices of low rank, nothing lost with the residual.
#include "runtime/communicator/low_rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>

#include "runtime/base/philox.h"
#include "tests/ranks.h"

namespace tern {
namespace {

using testing::on_ranks;
using testing::quick_config;

std::vector<float> random_values(size_t n, uint64_t seed) {
  Philox random(seed);
  std::vector<float> values(n);
  for (float& x : values) x = random.uniform() - 0.5F;
  return values;
}

double norm(std::span<const float> values) {
  double sum = 0;
  for (const float x : values) sum += static_cast<double>(x) * static_cast<double>(x);
  return std::sqrt(sum);
}

/// The mean of what `of(rank)` gives.
template <class Of>
std::vector<double> mean(int n_ranks, size_t n, const Of& of) {
  std::vector<double> sum(n);
  for (int r = 0; r < n_ranks; ++r) {
    const std::vector<float> theirs = of(r);
    for (size_t i = 0; i < n; ++i) sum[i] += static_cast<double>(theirs[i]) / n_ranks;
  }
  return sum;
}

TEST(LowRank, AMatrixOfThatRankIsSentWhole) {
  const LowRankShape shape{.rows = 40, .cols = 90, .rank = 3};
  const auto gradient = [&](int rank) {
    // All ranks' matrices have the same rows space, or their mean would have a higher rank.
    const std::vector<float> p = random_values(shape.rows * shape.rank, 100 + static_cast<uint64_t>(rank));
    const std::vector<float> q = random_values(shape.rank * shape.cols, 7);
    std::vector<float> m(shape.rows * shape.cols);
    low_rank_expand(shape, {p.data(), q.data()}, nullptr, m.data());
    return m;
  };
  const std::vector<double> exact = mean(3, shape.rows * shape.cols, gradient);
  on_ranks(3, quick_config(), [&](Communicator& comm) {
    auto low_rank = LowRank::create(shape, 5);
    ASSERT_TRUE(low_rank.ok());
    std::vector<float> m = gradient(comm.rank());
    std::vector<float> residual(m.size());
    ASSERT_TRUE(low_rank->average(comm, m, residual).ok());
    // Rounding grows with the condition of the random projection.
    for (size_t i = 0; i < m.size(); ++i) ASSERT_NEAR(m[i], exact[i], 1e-4) << i;
  });
}

TEST(LowRank, AllRanksGetTheSameBitsAndNothingIsLost) {
  constexpr int kSteps = 30;
  for (const int n_ranks : {1, 2, 3, 5})
    for (const LowRankShape& shape :
         {LowRankShape{1, 1, 1}, {17, 33, 1}, {64, 48, 4}, {5, 200, 5}, {200, 40, 32}}) {
      SCOPED_TRACE(fmt::format("p={} {}x{} rank {}", n_ranks, shape.rows, shape.cols, shape.rank));
      const size_t n = shape.rows * shape.cols;
      const auto gradient = [&](int rank, int step) {
        return random_values(n, static_cast<uint64_t>(1000 * step + rank));
      };
      std::mutex mutex;
      std::vector<double> kept(n);  // the mean of the residuals
      std::vector<float> first;
      std::vector<double> sent(n);
      on_ranks(n_ranks, quick_config(), [&](Communicator& comm) {
        auto low_rank = LowRank::create(shape, 5);
        ASSERT_TRUE(low_rank.ok());
        std::vector<float> residual(n);
        std::vector<float> all;
        std::vector<double> sum(n);
        for (int step = 0; step < kSteps; ++step) {
          std::vector<float> m = gradient(comm.rank(), step);
          ASSERT_TRUE(low_rank->average(comm, m, residual).ok());
          for (size_t i = 0; i < n; ++i) sum[i] += static_cast<double>(m[i]);
          all.insert(all.end(), m.begin(), m.end());
        }
        const std::lock_guard lock(mutex);
        if (first.empty()) first = all;
        EXPECT_EQ(all, first) << "rank " << comm.rank();
        for (size_t i = 0; i < n; ++i) kept[i] += static_cast<double>(residual[i]) / n_ranks;
        sent = sum;
      });
      for (size_t i = 0; i < n; ++i) {
        double exact = 0;
        for (int step = 0; step < kSteps; ++step)
          for (int r = 0; r < n_ranks; ++r) exact += static_cast<double>(gradient(r, step)[i]) / n_ranks;
        ASSERT_NEAR(sent[i] + kept[i], exact, 1e-4) << i;
        if (i == 50) break;  // each costs all gradients again
      }
    }
}

TEST(LowRank, ASteadyGradientArrivesMoreAndMore) {
  const LowRankShape shape{.rows = 32, .cols = 32, .rank = 2};
  const std::vector<float> gradient = random_values(32 * 32, 3);
  on_ranks(2, quick_config(), [&](Communicator& comm) {
    auto low_rank = LowRank::create(shape, 5);
    ASSERT_TRUE(low_rank.ok());
    std::vector<float> residual(gradient.size());
    std::vector<float> sum(gradient.size());
    double last = std::numeric_limits<double>::infinity();
    for (int step = 1; step <= 64; ++step) {
      std::vector<float> m = gradient;
      ASSERT_TRUE(low_rank->average(comm, m, residual).ok());
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += m[i];
      if ((step & (step - 1)) != 0 || step < 8) continue;
      std::vector<float> missing(sum.size());
      for (size_t i = 0; i < sum.size(); ++i) missing[i] = sum[i] / static_cast<float>(step) - gradient[i];
      EXPECT_LT(norm(missing), 0.75 * last) << step;
      last = norm(missing);
    }
    EXPECT_LT(last, 0.35 * norm(gradient));
  });
}

TEST(LowRank, SendsOnlyTheThinMatrices) {
  const LowRankShape shape{.rows = 256, .cols = 512, .rank = 4};
  on_ranks(2, quick_config(), [&](Communicator& comm) {
    auto low_rank = LowRank::create(shape, 5);
    ASSERT_TRUE(low_rank.ok());
    std::vector<float> m(shape.rows * shape.cols, 1);
    std::vector<float> residual(m.size());
    ASSERT_TRUE(low_rank->average(comm, m, residual).ok());
    const size_t most = shape.rank * shape.cols * sizeof(float);  // of the last of its two all_reduces
    EXPECT_LE(comm.last_report().bytes_on_wire, 2 * most);
    EXPECT_GT(comm.last_report().bytes_on_wire, 0U);
  });
}

TEST(LowRank, WhatIsNotFiniteShowsOnAllRanksAndKeepsTheState) {
  const LowRankShape shape{.rows = 8, .cols = 8, .rank = 2};
  on_ranks(3, quick_config(), [&](Communicator& comm) {
    auto low_rank = LowRank::create(shape, 5);
    ASSERT_TRUE(low_rank.ok());
    std::vector<float> residual(64);
    std::vector<float> m = random_values(64, static_cast<uint64_t>(comm.rank()));
    ASSERT_TRUE(low_rank->average(comm, m, residual).ok());
    const std::vector<float> before = residual;
    const std::vector<float> directions(low_rank->directions().begin(), low_rank->directions().end());
    if (comm.rank() == 1) m[17] = std::numeric_limits<float>::infinity();
    ASSERT_TRUE(low_rank->average(comm, m, residual).ok());
    for (const float x : m) ASSERT_TRUE(std::isnan(x));
    EXPECT_EQ(residual, before);
    EXPECT_THAT(low_rank->directions(), ::testing::ElementsAreArray(directions));
    // And a step that is skipped for another reason.
    m = random_values(64, 77);
    ASSERT_TRUE(low_rank->average(comm, m, residual).ok());
    EXPECT_THAT(low_rank->directions(), ::testing::Not(::testing::ElementsAreArray(directions)));
    low_rank->roll_back();
    EXPECT_THAT(low_rank->directions(), ::testing::ElementsAreArray(directions));
  });
}

TEST(LowRank, ZerosDoNotStopIt) {
  const LowRankShape shape{.rows = 8, .cols = 12, .rank = 2};
  on_ranks(2, quick_config(), [&](Communicator& comm) {
    auto low_rank = LowRank::create(shape, 5);
    ASSERT_TRUE(low_rank.ok());
    std::vector<float> residual(96);
    std::vector<float> m(96);
    ASSERT_TRUE(low_rank->average(comm, m, residual).ok());
    EXPECT_EQ(m, std::vector<float>(96));
    m = std::vector<float>(96, 2.5F);  // rank 1
    ASSERT_TRUE(low_rank->average(comm, m, residual).ok());
    for (const float x : m) ASSERT_NEAR(x, 2.5F, 1e-5F);
  });
}

TEST(LowRank, WrongShapesAreRefused) {
  EXPECT_THAT(LowRank::create({.rows = 0, .cols = 5, .rank = 1}, 0).error().message,
              ::testing::HasSubstr("no elements"));
  for (const size_t rank : {0, 6, 33})
    EXPECT_THAT(LowRank::create({.rows = 5, .cols = 50, .rank = rank}, 0).error().message,
                ::testing::HasSubstr("allowed: 1..5"));
  on_ranks(1, quick_config(), [&](Communicator& comm) {
    auto low_rank = LowRank::create({.rows = 5, .cols = 5, .rank = 2}, 0);
    ASSERT_TRUE(low_rank.ok());
    std::vector<float> m(25);
    std::vector<float> residual(24);
    EXPECT_EQ(low_rank->average(comm, m, residual).error().code, Code::kInvalidArgument);
  });
}

}  // namespace
}  // namespace tern
