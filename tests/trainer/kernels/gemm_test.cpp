#include "trainer/kernels/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/trainer/kernels/random_values.h"

namespace tern::trainer {
namespace {

struct Case {
  int64_t m, n, k;
  bool a_transposed, b_transposed;
  double alpha, beta;
};

template <class T>
class GemmTest : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(GemmTest, Scalars);

template <class T>
void check(const Case& c, int threads) {
  SCOPED_TRACE(testing::Message() << c.m << "x" << c.n << "x" << c.k << " ta " << c.a_transposed << " tb "
                                  << c.b_transposed << " beta " << c.beta << " threads " << threads);
  // strides longer than rows: kernels must not touch what lies between
  const int64_t a_stride = (c.a_transposed ? c.m : c.k) + 3;
  const int64_t b_stride = (c.b_transposed ? c.k : c.n) + 5;
  const int64_t c_stride = c.n + 7;
  const auto a = random_values<T>((c.a_transposed ? c.k : c.m) * a_stride, 1);
  const auto b = random_values<T>((c.b_transposed ? c.n : c.k) * b_stride, 2);
  auto out = random_values<T>(c.m * c_stride, 3);
  std::vector<double> want(out.begin(), out.end());
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t j = 0; j < c.n; ++j) {
      double sum = 0;
      for (int64_t x = 0; x < c.k; ++x)
        sum +=
            static_cast<double>(
                a[static_cast<size_t>(c.a_transposed ? x * a_stride + i : i * a_stride + x)]) *
            static_cast<double>(b[static_cast<size_t>(c.b_transposed ? j * b_stride + x : x * b_stride + j)]);
      double& w = want[static_cast<size_t>(i * c_stride + j)];
      w = c.alpha * sum + c.beta * w;
      // a product with beta 0 must not even read the old value
      if (c.beta == 0) out[static_cast<size_t>(i * c_stride + j)] = std::numeric_limits<T>::quiet_NaN();
    }
  }
  Team team(threads);
  const Rows<const T> a_rows{a.data(), c.a_transposed ? c.k : c.m, a_stride - 3, a_stride};
  const Rows<const T> b_rows{b.data(), c.b_transposed ? c.n : c.k, b_stride - 5, b_stride};
  multiply(team, Product<T>{.a = {a_rows, c.a_transposed},
                            .b = {b_rows, c.b_transposed},
                            .c = {out.data(), c.m, c.n, c_stride},
                            .alpha = static_cast<T>(c.alpha),
                            .beta = static_cast<T>(c.beta)});
  expect_near<T>(out, want, 8 * std::sqrt(static_cast<double>(c.k)) + 4, 2.0);
}

TYPED_TEST(GemmTest, EveryTranspositionAndSplitAgreesWithTheTripleLoop) {
  for (const auto [m, n, k] :
       {std::array<int64_t, 3>{1, 1, 1}, {3, 5, 7}, {64, 128, 64}, {17, 300, 33}, {200, 9, 65}}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        for (const int threads : {1, 2, 3}) {
          check<TypeParam>({m, n, k, ta, tb, 1.0, 0.0}, threads);
          check<TypeParam>({m, n, k, ta, tb, 0.5, 1.0}, threads);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tern::trainer
