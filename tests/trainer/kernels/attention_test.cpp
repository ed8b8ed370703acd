// Blocked attention against the plain definition with all scores, forward and backward.
#include "trainer/kernels/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/trainer/kernels/random_values.h"
#include "tests/trainer/kernels/simd_targets.h"

namespace tern::trainer {
namespace {

using Values = std::vector<double>;

/// Causal attention of one sequence by its definition, in fp64: output, and gradient of qkv for a given
/// d_out.
struct Reference {
  const AttentionShape& s;
  Values qkv, d_out;
  Values out, d_qkv;

  size_t in(int64_t t, int64_t head, int64_t i) const {
    return static_cast<size_t>(t * s.qkv_width() + head * s.head_dim + i);
  }
  size_t at(int64_t t, int64_t head, int64_t i) const {
    return static_cast<size_t>(t * s.out_width() + head * s.head_dim + i);
  }

  void run() {
    out.assign(static_cast<size_t>(s.tokens * s.out_width()), 0);
    d_qkv.assign(qkv.size(), 0);
    for (int64_t head = 0; head < s.heads; ++head)
      for (int64_t t = 0; t < s.tokens; ++t) row(head, t);
  }

  void row(int64_t head, int64_t t) {
    const int64_t key = s.heads + head / s.group(), value = key + s.kv_heads;
    const double scale = 1.0 / std::sqrt(static_cast<double>(s.head_dim));
    Values p(static_cast<size_t>(t + 1)), dp(p.size());
    double sum = 0, dot = 0;
    for (int64_t j = 0; j <= t; ++j) {
      double score = 0;
      for (int64_t i = 0; i < s.head_dim; ++i) score += qkv[in(t, head, i)] * qkv[in(j, key, i)];
      sum += p[static_cast<size_t>(j)] = std::exp(score * scale);
    }
    for (int64_t j = 0; j <= t; ++j) {
      double& pj = p[static_cast<size_t>(j)];
      pj /= sum;
      for (int64_t i = 0; i < s.head_dim; ++i) {
        out[at(t, head, i)] += pj * qkv[in(j, value, i)];
        d_qkv[in(j, value, i)] += pj * d_out[at(t, head, i)];
        dp[static_cast<size_t>(j)] += d_out[at(t, head, i)] * qkv[in(j, value, i)];
      }
      dot += pj * dp[static_cast<size_t>(j)];
    }
    for (int64_t j = 0; j <= t; ++j) {
      const double ds = p[static_cast<size_t>(j)] * (dp[static_cast<size_t>(j)] - dot) * scale;
      for (int64_t i = 0; i < s.head_dim; ++i) {
        d_qkv[in(t, head, i)] += ds * qkv[in(j, key, i)];
        d_qkv[in(j, key, i)] += ds * qkv[in(t, head, i)];
      }
    }
  }
};

template <class T>
struct Outcome {
  std::vector<T> out, lse, d_qkv;
};

template <class T>
Outcome<T> run_kernel(const AttentionShape& shape, const std::vector<T>& qkv, const std::vector<T>& d_out) {
  const T nan = std::numeric_limits<T>::quiet_NaN();  // whatever was there before must not matter
  Outcome<T> o{std::vector<T>(d_out.size(), nan),
               std::vector<T>(static_cast<size_t>(shape.heads * shape.tokens)),
               std::vector<T>(qkv.size(), nan)};
  std::vector<T> scratch(static_cast<size_t>(attention_scratch<T>(shape)), nan);
  const auto in = as_rows(qkv, shape.qkv_width());
  const auto out = as_rows(o.out, shape.out_width());
  for (int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head)
    attention_forward(AttentionForward<T>{shape, in, out, o.lse.data(), scratch.data()}, kv_head);
  for (int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head)
    attention_backward(AttentionBackward<T>{shape, in, out, o.lse.data(), as_rows(d_out, shape.out_width()),
                                            as_rows(o.d_qkv, shape.qkv_width()), scratch.data()},
                       kv_head);
  return o;
}

template <class T>
class AttentionTest : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(AttentionTest, Scalars);

TYPED_TEST(AttentionTest, OutputAndGradientsAgreeWithTheDefinition) {
  using T = TypeParam;
  // one token; shorter than a block; on and over a block's edge; grouped, single and separate key heads
  const AttentionShape shapes[] = {{1, 2, 1, 4},   {5, 3, 3, 6},   {64, 2, 2, 16},
                                   {65, 4, 2, 10}, {130, 6, 2, 8}, {200, 4, 1, 64}};
  for (const AttentionShape& shape : shapes) {
    SCOPED_TRACE(testing::Message() << shape.tokens << " tokens, heads " << shape.heads << "/"
                                    << shape.kv_heads << " of " << shape.head_dim);
    const auto qkv = random_values<T>(shape.tokens * shape.qkv_width(), 1);
    const auto d_out = random_values<T>(shape.tokens * shape.out_width(), 2);
    Reference want{shape, Values(qkv.begin(), qkv.end()), Values(d_out.begin(), d_out.end()), {}, {}};
    want.run();
    for_each_simd_target([&] {
      const Outcome<T> got = run_kernel(shape, qkv, d_out);
      expect_near<T>(got.out, want.out, 64);
      expect_near<T>(got.d_qkv, want.d_qkv, 400);
    });
  }
}

TYPED_TEST(AttentionTest, ScoresFarBeyondExpsRangeDoNotOverflow) {
  using T = TypeParam;
  const AttentionShape shape{20, 1, 1, 4};
  const auto qkv = random_values<T>(shape.tokens * shape.qkv_width(), 1, 40.0);
  const auto d_out = random_values<T>(shape.tokens * shape.out_width(), 2);
  const Outcome<T> got = run_kernel(shape, qkv, d_out);
  for (const T value : got.out) EXPECT_TRUE(std::isfinite(value));
  for (const T value : got.d_qkv) EXPECT_TRUE(std::isfinite(value));
}

TYPED_TEST(AttentionTest, AKeyThatIsNotANumberReachesEveryLaterRow) {
  using T = TypeParam;
  const AttentionShape shape{70, 1, 1, 4};
  auto qkv = random_values<T>(shape.tokens * shape.qkv_width(), 1);
  qkv[static_cast<size_t>(30 * shape.qkv_width() + 4)] = std::numeric_limits<T>::quiet_NaN();
  const auto d_out = random_values<T>(shape.tokens * shape.out_width(), 2);
  for_each_simd_target([&] {
    const Outcome<T> got = run_kernel(shape, qkv, d_out);
    for (int64_t t = 0; t < shape.tokens; ++t)
      EXPECT_EQ(std::isnan(got.out[static_cast<size_t>(t * 4)]), t >= 30) << "row " << t;
  });
}

}  // namespace
}  // namespace tern::trainer
