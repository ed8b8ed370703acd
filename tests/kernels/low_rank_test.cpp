#include "kernels/low_rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "runtime/base/philox.h"
#include "tests/kernels/simd_target.h"

namespace tern {
namespace {

class LowRankOnEveryTarget : public test::OnSimdTarget {};
TERN_ON_EVERY_SIMD_TARGET(LowRankOnEveryTarget);

std::vector<float> random_values(size_t n, uint64_t stream) {
  Philox random(11, stream);
  std::vector<float> values(n);
  for (float& x : values) x = random.uniform() - 0.5F;
  return values;
}

constexpr LowRankShape kShapes[] = {{1, 1, 1},    {3, 5, 2},   {7, 16, 3},   {16, 15, 4},
                                    {33, 257, 5}, {64, 31, 8}, {40, 300, 32}};

std::vector<double> product(const LowRankShape& s, std::span<const float> p, std::span<const float> q) {
  std::vector<double> m(s.rows * s.cols);
  for (size_t i = 0; i < s.rows; ++i)
    for (size_t j = 0; j < s.cols; ++j)
      for (size_t k = 0; k < s.rank; ++k)
        m[i * s.cols + j] += static_cast<double>(p[i * s.rank + k]) * static_cast<double>(q[k * s.cols + j]);
  return m;
}

TEST_P(LowRankOnEveryTarget, ComputesTheProducts) {
  for (const LowRankShape& s : kShapes) {
    SCOPED_TRACE(::testing::Message() << s.rows << " x " << s.cols << " rank " << s.rank);
    const std::vector<float> m = random_values(s.rows * s.cols, 1);
    const std::vector<float> q = random_values(s.cols * s.rank, 2);
    const std::vector<float> p = random_values(s.rows * s.rank, 3);
    std::vector<float> projected(s.rows * s.rank, 9);
    low_rank_project(s, m.data(), q.data(), projected.data());
    std::vector<float> back(s.cols * s.rank, 9);
    low_rank_back_project(s, m.data(), p.data(), back.data());
    const double bound = 1e-6 * static_cast<double>(s.rows + s.cols);
    for (size_t k = 0; k < s.rank; ++k) {
      for (size_t i = 0; i < s.rows; ++i) {
        double exact = 0;
        for (size_t j = 0; j < s.cols; ++j)
          exact += static_cast<double>(m[i * s.cols + j]) * static_cast<double>(q[k * s.cols + j]);
        ASSERT_NEAR(projected[i * s.rank + k], exact, bound) << i << " " << k;
      }
      for (size_t j = 0; j < s.cols; ++j) {
        double exact = 0;
        for (size_t i = 0; i < s.rows; ++i)
          exact += static_cast<double>(m[i * s.cols + j]) * static_cast<double>(p[i * s.rank + k]);
        ASSERT_NEAR(back[k * s.cols + j], exact, bound) << j << " " << k;
      }
    }
    const std::vector<double> whole = product(s, p, q);
    std::vector<float> out(m.size());
    std::vector<float> rest = m;
    low_rank_expand(s, {p.data(), q.data()}, nullptr, out.data());
    low_rank_expand(s, {p.data(), q.data()}, rest.data(), rest.data());
    for (size_t i = 0; i < m.size(); ++i) {
      ASSERT_NEAR(out[i], whole[i], bound) << i;
      ASSERT_EQ(rest[i], m[i] - out[i]) << i;
    }
  }
}

TEST(LowRankKernels, GiveTheSameBitsOnEveryTarget) {
  for (const LowRankShape& s : kShapes) {
    const std::vector<float> m = random_values(s.rows * s.cols, 1);
    const std::vector<float> q = random_values(s.cols * s.rank, 2);
    std::vector<std::vector<float>> results;
    for (const std::string_view target : simd_targets()) {
      const OnlySimdTarget only(target);
      std::vector<float> p(s.rows * s.rank), back(s.cols * s.rank), out(m.size());
      low_rank_project(s, m.data(), q.data(), p.data());
      low_rank_back_project(s, m.data(), p.data(), back.data());
      low_rank_expand(s, {p.data(), back.data()}, m.data(), out.data());
      p.insert(p.end(), back.begin(), back.end());
      p.insert(p.end(), out.begin(), out.end());
      results.push_back(std::move(p));
      ASSERT_EQ(results.back(), results.front())
          << target << " " << s.rows << " x " << s.cols << " rank " << s.rank;
    }
  }
}

}  // namespace
}  // namespace tern
