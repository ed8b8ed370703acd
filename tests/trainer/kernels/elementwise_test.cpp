// Norm, rotation, activation and loss kernels against plain loops, on every SIMD target.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/trainer/kernels/random_values.h"
#include "tests/trainer/kernels/simd_targets.h"
#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/embedding.h"
#include "trainer/kernels/rms_norm.h"
#include "trainer/kernels/rope.h"
#include "trainer/kernels/swiglu.h"

namespace tern::trainer {
namespace {

template <class T>
class ElementwiseTest : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(ElementwiseTest, Scalars);

// widths with and without a partial vector, also shorter than one
constexpr int64_t kWidths[] = {1, 3, 8, 16, 31, 64, 100};
constexpr int64_t kRows = 5;

template <class T>
size_t at(int64_t row, int64_t width, T column) {
  return static_cast<size_t>(row * width + column);
}

TYPED_TEST(ElementwiseTest, RmsNormAgreesWithItsFormula) {
  using T = TypeParam;
  for_each_simd_target([] {
    for (const int64_t width : kWidths) {
      const auto x = random_values<T>(kRows * width, 1);
      const auto weight = random_values<T>(width, 2);
      std::vector<T> rstd(kRows), y(x.size()), again(x.size());
      rms_norm_forward(
          RmsNormForward<T>{T(1e-5), as_rows(x, width), weight.data(), rstd.data(), as_rows(y, width)});
      rms_norm_again(RmsNormAgain<T>{as_rows(x, width), rstd.data(), weight.data(), as_rows(again, width)});
      std::vector<double> want(x.size());
      for (int64_t row = 0; row < kRows; ++row) {
        double squares = 0;
        for (int64_t i = 0; i < width; ++i) squares += std::pow(static_cast<double>(x[at(row, width, i)]), 2);
        for (int64_t i = 0; i < width; ++i)
          want[at(row, width, i)] =
              static_cast<double>(x[at(row, width, i)]) *
              static_cast<double>(weight[static_cast<size_t>(i)]) /
              std::sqrt(squares / static_cast<double>(width) + static_cast<double>(T(1e-5)));
      }
      expect_near<T>(y, want, 16);
      EXPECT_EQ(y, again);
    }
  });
}

TYPED_TEST(ElementwiseTest, RmsNormGradientAgreesWithItsFormulaAndAddsTheResidual) {
  using T = TypeParam;
  for_each_simd_target([] {
    for (const int64_t width : kWidths) {
      const auto x = random_values<T>(kRows * width, 1);
      const auto weight = random_values<T>(width, 2);
      const auto dy = random_values<T>(kRows * width, 3);
      const auto residual = random_values<T>(kRows * width, 4);
      const auto rstd = std::vector<T>(kRows, T(0.7));
      std::vector<T> dx(x.size()), dx_alone(x.size()), dweight(static_cast<size_t>(width), T(2)),
          ignored = dweight;
      RmsNormBackward<T> args{as_rows(x, width),        rstd.data(),        weight.data(), as_rows(dy, width),
                              as_rows(residual, width), as_rows(dx, width), dweight.data()};
      rms_norm_backward(args);
      args.residual = {};
      args.dx = as_rows(dx_alone, width);
      args.dweight = ignored.data();
      rms_norm_backward(args);
      std::vector<double> want(x.size()), want_alone(x.size()), want_weight(static_cast<size_t>(width), 2.0);
      for (int64_t row = 0; row < kRows; ++row) {
        const double r = static_cast<double>(rstd[0]);
        double mean = 0;
        for (int64_t i = 0; i < width; ++i) {
          const size_t e = at(row, width, i);
          const double h = static_cast<double>(x[e]) * r;
          mean += static_cast<double>(dy[e]) * static_cast<double>(weight[static_cast<size_t>(i)]) * h;
          want_weight[static_cast<size_t>(i)] += static_cast<double>(dy[e]) * h;
        }
        mean /= static_cast<double>(width);
        for (int64_t i = 0; i < width; ++i) {
          const size_t e = at(row, width, i);
          const double g = static_cast<double>(dy[e]) * static_cast<double>(weight[static_cast<size_t>(i)]);
          want_alone[e] = r * (g - static_cast<double>(x[e]) * r * mean);
          want[e] = want_alone[e] + static_cast<double>(residual[e]);
        }
      }
      expect_near<T>(dx, want, 32);
      expect_near<T>(dx_alone, want_alone, 32);
      expect_near<T>(dweight, want_weight, 32);
    }
  });
}

TYPED_TEST(ElementwiseTest, RotationTurnsPairsByTheirAngleAndBack) {
  using T = TypeParam;
  for_each_simd_target([] {
    const int64_t tokens = 4, rows = 9, heads = 3, stride = 100;
    for (const int64_t head_dim : {2, 6, 16, 32}) {
      const int64_t half = head_dim / 2;
      std::vector<T> cosines, sines;
      for (int64_t i = 0; i < tokens * half; ++i) {
        cosines.push_back(static_cast<T>(std::cos(0.3 * static_cast<double>(i))));
        sines.push_back(static_cast<T>(std::sin(0.3 * static_cast<double>(i))));
      }
      const auto before = random_values<T>(rows * stride, 1);
      auto x = before;
      std::vector<double> want(x.begin(), x.end());
      const int64_t first_row = 2;
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t position = (first_row + row) % tokens;
        for (int64_t pair = 0; pair < heads * half; ++pair) {
          const size_t low = at(row, stride, pair / half * head_dim + pair % half);
          const double angle = 0.3 * static_cast<double>(position * half + pair % half);
          const double a = want[low], b = want[low + static_cast<size_t>(half)];
          want[low] = a * std::cos(angle) - b * std::sin(angle);
          want[low + static_cast<size_t>(half)] = b * std::cos(angle) + a * std::sin(angle);
        }
      }
      Rotation<T> rotation{{x.data(), rows, heads * head_dim, stride},
                           first_row,
                           tokens,
                           head_dim,
                           cosines.data(),
                           sines.data(),
                           1};
      rotate(rotation);
      expect_near<T>(x, want, 8);
      rotation.direction = -1;
      rotate(rotation);
      expect_near<T>(x, std::vector<double>(before.begin(), before.end()), 8);
    }
  });
}

double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

TYPED_TEST(ElementwiseTest, SwigluAndItsGradientAgreeWithTheirFormulas) {
  using T = TypeParam;
  for_each_simd_target([] {
    for (const int64_t width : kWidths) {
      auto gate_up = random_values<T>(kRows * 2 * width, 1, 3.0);
      gate_up[0] = T(-300);  // exp of this would overflow
      const auto d_out = random_values<T>(kRows * width, 2);
      std::vector<T> out(d_out.size());
      swiglu_forward(SwigluForward<T>{as_rows(gate_up, 2 * width), as_rows(out, width)});
      auto d_gate_up = gate_up;
      auto out_again = d_out;
      swiglu_backward(SwigluBackward<T>{as_rows(d_gate_up, 2 * width), as_rows(out_again, width)});
      std::vector<double> want(out.size()), want_gate_up(gate_up.size());
      for (int64_t row = 0; row < kRows; ++row) {
        for (int64_t i = 0; i < width; ++i) {
          const size_t gate = at(row, 2 * width, i), up = at(row, 2 * width, width + i),
                       e = at(row, width, i);
          const double g = static_cast<double>(gate_up[gate]), u = static_cast<double>(gate_up[up]);
          const double s = sigmoid(g), upstream = static_cast<double>(d_out[e]);
          want[e] = g * s * u;
          want_gate_up[gate] = upstream * u * (s + g * s * (1 - s));
          want_gate_up[up] = upstream * g * s;
        }
      }
      expect_near<T>(out, want, 16);
      expect_near<T>(out_again, want, 16);
      expect_near<T>(d_gate_up, want_gate_up, 64);
    }
  });
}

TYPED_TEST(ElementwiseTest, CrossEntropyAndItsGradientAgreeWithTheirFormulas) {
  using T = TypeParam;
  for_each_simd_target([] {
    for (const int64_t vocab : kWidths) {
      auto logits = random_values<T>(kRows * vocab, 1, 4.0);
      logits[0] += T(200);  // exp of this would overflow without the shift
      std::vector<int32_t> targets;
      for (int64_t row = 0; row < kRows; ++row) targets.push_back(static_cast<int32_t>((row * 7) % vocab));
      targets[2] = -1;
      std::vector<double> want_losses(kRows), want(logits.size());
      for (int64_t row = 0; row < kRows; ++row) {
        if (targets[static_cast<size_t>(row)] < 0) continue;
        double top = -1e300, sum = 0;
        for (int64_t i = 0; i < vocab; ++i)
          top = std::max(top, static_cast<double>(logits[at(row, vocab, i)]));
        for (int64_t i = 0; i < vocab; ++i)
          sum += std::exp(static_cast<double>(logits[at(row, vocab, i)]) - top);
        const size_t target = at(row, vocab, targets[static_cast<size_t>(row)]);
        want_losses[static_cast<size_t>(row)] = std::log(sum) + top - static_cast<double>(logits[target]);
        for (int64_t i = 0; i < vocab; ++i)
          want[at(row, vocab, i)] = std::exp(static_cast<double>(logits[at(row, vocab, i)]) - top) / sum;
        want[target] -= 1;
      }
      std::vector<double> losses(kRows, 99.0);
      cross_entropy(CrossEntropy<T>{targets.data(), as_rows(logits, vocab), losses.data()});
      expect_near<T>(logits, want, 64);
      for (size_t row = 0; row < losses.size(); ++row)
        EXPECT_NEAR(losses[row], want_losses[row],
                    128.0 * static_cast<double>(std::numeric_limits<T>::epsilon()));
    }
  });
}

TYPED_TEST(ElementwiseTest, ANonFiniteLogitAnywhereMakesTheLossNonFinite) {
  using T = TypeParam;
  for_each_simd_target([] {
    for (const T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()}) {
      for (const size_t where : {size_t{0}, size_t{17}, size_t{18}}) {
        auto logits = random_values<T>(19, 1);
        logits[where] = bad;
        const int32_t target = 3;
        double loss = 0;
        cross_entropy(CrossEntropy<T>{&target, as_rows(logits, 19), &loss});
        EXPECT_FALSE(std::isfinite(loss)) << "element " << where;
      }
    }
  });
}

TYPED_TEST(ElementwiseTest, EmbeddingGradientsOfRepeatedTokensAddUpWhateverTheTeam) {
  using T = TypeParam;
  const int64_t width = 37;
  const std::vector<int32_t> tokens = {2, 0, 2, 2, 4};
  const auto dx = random_values<T>(5 * width, 1);
  const auto table = random_values<T>(5 * width, 2);
  std::vector<T> x(dx.size());
  embed(table.data(), tokens, as_rows(x, width));
  EXPECT_EQ(x[at(3, width, 5)], table[at(2, width, 5)]);
  std::vector<T> first;
  for (const int threads : {1, 2, 3}) {
    Team team(threads);
    auto d_table = table;
    embedding_backward(team, EmbeddingBackward<T>{tokens, as_rows(dx, width), d_table.data()});
    const T want = table[at(2, width, 5)] + dx[at(0, width, 5)] + dx[at(2, width, 5)] + dx[at(3, width, 5)];
    EXPECT_EQ(d_table[at(2, width, 5)], want);
    EXPECT_EQ(d_table[at(1, width, 5)], table[at(1, width, 5)]);
    if (first.empty()) first = d_table;
    EXPECT_EQ(d_table, first);
  }
}

}  // namespace
}  // namespace tern::trainer
