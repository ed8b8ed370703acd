// AdamW, gradient norm and scaling against plain loops in fp64.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/trainer/kernels/random_values.h"
#include "tests/trainer/kernels/simd_targets.h"
#include "trainer/kernels/adamw.h"
#include "trainer/kernels/gradient_norm.h"

namespace tern::trainer {
namespace {

template <class T>
class OptimizerTest : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(OptimizerTest, Scalars);

TYPED_TEST(OptimizerTest, AdamWFollowsItsFormulaOverSeveralSteps) {
  using T = TypeParam;
  for_each_simd_target([] {
    const int64_t n = 101;
    auto params = random_values<T>(n, 1);
    std::vector<T> m(params.size()), v(params.size());
    std::vector<double> want(params.begin(), params.end()), want_m(params.size()), want_v(params.size());
    Team team(1);
    for (int step = 1; step <= 5; ++step) {
      const auto grads = random_values<T>(n, static_cast<uint64_t>(step) + 10);
      const AdamW adamw{
          .step = step, .lr = 0.01, .beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1, .grad_scale = 0.5};
      adamw_step<T>(team, adamw, params, grads, m, v);
      for (size_t i = 0; i < want.size(); ++i) {
        const double g = 0.5 * static_cast<double>(grads[i]);
        want_m[i] = 0.9 * want_m[i] + 0.1 * g;
        want_v[i] = 0.95 * want_v[i] + 0.05 * g * g;
        const double m_hat = want_m[i] / (1 - std::pow(0.9, step)),
                     v_hat = want_v[i] / (1 - std::pow(0.95, step));
        want[i] = want[i] * (1 - 0.01 * 0.1) - 0.01 * m_hat / (std::sqrt(v_hat) + 1e-8);
      }
    }
    expect_near<T>(params, want, 16);
    expect_near<T>(m, want_m, 16);
    expect_near<T>(v, want_v, 16);
  });
}

TYPED_TEST(OptimizerTest, AdamWOnPartsGivesTheBitsOfTheWhole) {
  using T = TypeParam;
  const int64_t n = 50000;
  const auto grads = random_values<T>(n, 1);
  auto whole = random_values<T>(n, 2);
  auto parts = whole;
  std::vector<T> m(whole.size()), v(whole.size()), m_parts(whole.size()), v_parts(whole.size());
  Team one(1), three(3);
  const AdamW adamw{.step = 3, .weight_decay = 0.1};
  adamw_step<T>(three, adamw, whole, grads, m, v);
  for (size_t begin = 0; begin < whole.size();) {
    const size_t size = std::min<size_t>(7001, whole.size() - begin);
    adamw_step<T>(one, adamw, std::span(parts).subspan(begin, size), std::span(grads).subspan(begin, size),
                  std::span(m_parts).subspan(begin, size), std::span(v_parts).subspan(begin, size));
    begin += size;
  }
  EXPECT_EQ(whole, parts);
  EXPECT_EQ(m, m_parts);
  EXPECT_EQ(v, v_parts);
}

TYPED_TEST(OptimizerTest, PaddingStaysZero) {
  using T = TypeParam;
  std::vector<T> params(19), m(19), v(19);
  const std::vector<T> grads(19);
  Team team(1);
  adamw_step<T>(team, AdamW{.weight_decay = 0.1}, params, grads, m, v);
  for (const T value : params) EXPECT_EQ(value, T(0));
}

TYPED_TEST(OptimizerTest, SumOfSquaresIsExactToDoublePrecisionAndTheSameForEveryTeam) {
  using T = TypeParam;
  for_each_simd_target([] {
    for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{15}, kNormBlock, 3 * kNormBlock + 77}) {
      const auto x = random_values<T>(n, 1, 100.0);
      long double want = 0;
      for (const T value : x) want += static_cast<long double>(value) * static_cast<long double>(value);
      Team one(1), three(3);
      const double got = sum_of_squares<T>(one, x);
      EXPECT_NEAR(got, static_cast<double>(want), 1e-12 * static_cast<double>(want));
      EXPECT_EQ(got, sum_of_squares<T>(three, x));
    }
  });
}

TYPED_TEST(OptimizerTest, LargeGradientsDoNotOverflowTheNormOfFloats) {
  const std::vector<float> x(10, 1e30F);
  Team team(1);
  EXPECT_NEAR(sum_of_squares<float>(team, x), 1e61, 1e55);
}

TYPED_TEST(OptimizerTest, TheFirstNonFiniteElementIsFound) {
  using T = TypeParam;
  for_each_simd_target([] {
    auto x = random_values<T>(2 * kNormBlock + 5, 1);
    EXPECT_EQ(first_non_finite<T>(x), -1);
    x.back() = std::numeric_limits<T>::infinity();
    EXPECT_EQ(first_non_finite<T>(x), 2 * kNormBlock + 4);
    x[static_cast<size_t>(kNormBlock) + 1] = std::numeric_limits<T>::quiet_NaN();
    EXPECT_EQ(first_non_finite<T>(x), kNormBlock + 1);
    Team team(1);
    EXPECT_FALSE(std::isfinite(sum_of_squares<T>(team, x)));
  });
}

TYPED_TEST(OptimizerTest, ScaleMultipliesEveryElement) {
  using T = TypeParam;
  auto x = random_values<T>(kNormBlock + 3, 1);
  std::vector<T> want;
  for (const T value : x) want.push_back(value * T(0.25));
  Team team(2);
  scale<T>(team, x, T(0.25));
  EXPECT_EQ(x, want);
}

}  // namespace
}  // namespace tern::trainer
