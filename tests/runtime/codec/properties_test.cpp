// The numerical rules that every codec keeps, checked over the whole registry and every kind of gradient.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "kernels/targets.h"
#include "tests/runtime/codec/encoded.h"

namespace tern {
namespace {

constexpr size_t kSizes[] = {0, 1, 2, 15, 127, 128, 129, 1000, 4095, 4096, 4097, 3 * 4096 + 40};

/// Calls check(spec, kind, n, in) for every codec, kind of gradient and size.
template <class Check>
void for_every_case(Check check) {
  for (const CodecSpec& spec : test::all_specs()) {
    for (const test::GradientKind& kind : test::kGradientKinds) {
      for (const size_t n : kSizes) {
        SCOPED_TRACE(fmt::format("{} {} n={}", to_string(spec), kind.name, n));
        check(spec, kind, test::gradient(kind, n, n + 1));
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

float absmax_of(std::span<const float> block) {
  float absmax = 0;
  for (const float x : block) absmax = std::max(absmax, std::abs(x));
  return absmax;
}

std::span<const float> block_of(std::span<const float> v, size_t begin, size_t block) {
  return v.subspan(begin, std::min(block, v.size() - begin));
}

TEST(CodecProperties, Q8ErrsByHalfAStepAtMost) {
  const CodecSpec spec{.id = CodecId::kQ8};
  for_every_case([&](const CodecSpec& each, const test::GradientKind& kind, const std::vector<float>& in) {
    if (each != spec || !kind.finite) return;
    const auto out = test::decode(test::encode(spec, in));
    for (size_t begin = 0; begin < in.size(); begin += info(spec.id).block) {
      const double absmax = absmax_of(block_of(in, begin, info(spec.id).block));
      const double bound = 0.5 / 127 * absmax * (1 + 0x1p-7) + 0x1p-134;  // half a step of the smallest scale
      for (size_t i = begin; i < std::min(begin + info(spec.id).block, in.size()); ++i) {
        ASSERT_LE(std::abs(static_cast<double>(out[i]) - in[i]), bound) << "element " << i << " of " << in[i];
      }
    }
  });
}

TEST(CodecProperties, NoElementErrsByMoreThanTheRowSays) {
  for_every_case([](const CodecSpec& spec, const test::GradientKind& kind, const std::vector<float>& in) {
    if (!kind.finite || spec.id == CodecId::kBf16)
      return;  // bf16: large numbers become inf, and the header says so
    const auto out = test::decode(test::encode(spec, in));
    for (size_t begin = 0; begin < in.size(); begin += info(spec.id).block) {
      const double absmax = absmax_of(block_of(in, begin, info(spec.id).block));
      if (absmax < 0x1p-110) continue;  // the scale may be subnormal
      // Near the largest float the nearest code may be one that overflows; then the one before it is taken.
      const double bound = info(spec.id).max_error(spec, absmax) * (absmax >= 0x1p127 ? 2 : 1);
      for (size_t i = begin; i < std::min(begin + info(spec.id).block, in.size()); ++i) {
        ASSERT_LE(std::abs(static_cast<double>(out[i]) - in[i]), bound) << "element " << i << " of " << in[i];
      }
    }
  });
}

TEST(CodecProperties, StochasticRoundingIsUnbiased) {
  constexpr uint32_t kSteps = 1 << 16;
  for (const CodecSpec& spec : test::all_specs()) {
    if (!test::is_stochastic(spec)) continue;
    const bool rotates = spec.id == CodecId::kQ4h;  // a zero is then a sum of codes, as every element
    for (const float absmax : {1.0F, 3e38F, 1e-36F}) {
      if (rotates && absmax > 1) continue;  // what overflows is brought nearer to zero
      std::vector<float> in = test::gradient(test::kGradientKinds[0], info(spec.id).block, 1);
      for (float& x : in) x *= absmax / 4;
      in[0] = absmax;
      in[1] = -absmax;
      in[2] = 0;
      in[3] = absmax * 1e-7F;
      std::vector<double> sum(in.size());
      for (uint32_t step = 0; step < kSteps; ++step) {
        const auto out = test::decode(test::encode(spec, in, {.tag = {.step = step, .element_offset = 77}}));
        for (size_t i = 0; i < in.size(); ++i) sum[i] += out[i];
        ASSERT_TRUE(out[2] == 0.0F || rotates) << to_string(spec);
      }
      // Of one rounding: the scale, or the sum of 32 independent ones.
      const double scale = info(spec.id).max_error(spec, absmax) / (rotates ? std::sqrt(32) : 1);
      for (size_t i = 0; i < in.size(); ++i) {
        ASSERT_NEAR(sum[i] / kSteps, in[i], 5 * scale / (2 * 256))
            << to_string(spec) << " absmax " << absmax << " element " << i;
      }
    }
  }
}

TEST(CodecProperties, StochasticRoundingDependsOnTheStepAndTheElementOnly) {
  for (const CodecSpec& spec : test::all_specs()) {
    if (!test::is_stochastic(spec)) continue;
    const size_t block = info(spec.id).block;
    const auto in = test::gradient(test::kGradientKinds[0], 6000, 1);
    const auto all = test::decode(test::encode(spec, in, {.tag = {.step = 9, .element_offset = 1000}}));
    EXPECT_NE(test::decode(test::encode(spec, in, {.tag = {.step = 10, .element_offset = 1000}})), all);
    for (const size_t cut : {block, 5 * block}) {
      const auto rest = test::decode(
          test::encode(spec, std::span(in).subspan(cut), {.tag = {.step = 9, .element_offset = 1000 + cut}}));
      EXPECT_TRUE(std::equal(rest.begin(), rest.end(), all.begin() + static_cast<long>(cut)))
          << to_string(spec) << " cut at " << cut;
    }
  }
}

TEST(CodecProperties, Bf16RoundsToTheNearest) {
  for_every_case([](const CodecSpec& spec, const test::GradientKind& kind, const std::vector<float>& in) {
    if (spec.id != CodecId::kBf16 || !kind.finite) return;
    const auto out = test::decode(test::encode(spec, in));
    for (size_t i = 0; i < in.size(); ++i) {
      if (std::abs(in[i]) >= 3.3961776e38F) continue;  // rounds to infinity, and says so in the header
      ASSERT_LE(std::abs(static_cast<double>(out[i]) - in[i]), 0x1p-8 * std::abs(in[i]) + 0x1p-134) << in[i];
    }
  });
}

TEST(CodecProperties, ANearestCodeIsAContractionOnEveryBlock) {
  for_every_case([](const CodecSpec& spec, const test::GradientKind& kind, const std::vector<float>& in) {
    const auto block = static_cast<double>(std::max<size_t>(info(spec.id).block, 1));
    if (!kind.finite || spec.id == CodecId::kBf16 || test::is_stochastic(spec)) return;
    const auto out = test::decode(test::encode(spec, in));
    for (size_t begin = 0; begin < in.size(); begin += info(spec.id).block) {
      const auto x = block_of(in, begin, info(spec.id).block);
      // Less than half the smallest scale decodes to zeros; a rotated block is scaled by another absmax.
      if (absmax_of(x) < (spec.id == CodecId::kQ4h ? 0x1p-120F : 0x1p-134F)) continue;
      double lost = 0;
      for (size_t i = 0; i < x.size(); ++i) lost += std::pow(static_cast<double>(out[begin + i]) - x[i], 2);
      ASSERT_LE(lost, (1 - (1 - 0x1p-14) / block) * test::sum_of_squares(x)) << "block at " << begin;
    }
  });
}

TEST(CodecProperties, ResidualIsExactlyWhatTheEncodingLost) {
  for_every_case([](const CodecSpec& spec, const test::GradientKind& kind, const std::vector<float>& in) {
    if (!test::takes_residual(spec) || !kind.finite) return;
    auto residual = test::gradient(test::kGradientKinds[0], in.size(), 5);
    std::vector<float> v(in.size());
    for (size_t i = 0; i < in.size(); ++i) v[i] = in[i] + residual[i];
    const auto message = test::encode(spec, in, {.residual = &residual});
    const auto sent = test::decode(message);
    for (size_t i = 0; i < in.size(); ++i) {
      ASSERT_EQ(residual[i], v[i] - sent[i]) << "element " << i;  // rounded once
      if (test::loses_exactly(spec) && std::abs(v[i]) < 0x1p127F) {
        ASSERT_EQ(static_cast<double>(residual[i]) + sent[i], v[i]) << "element " << i;  // nothing is rounded
      }
    }
    EXPECT_EQ(message.bytes, test::encode(spec, v).bytes) << "encoding in + residual is encoding their sum";
  });
}

TEST(CodecProperties, SentPlusResidualIsTheSumOfTheGradientsOverManySteps) {
  for (const CodecSpec& spec : test::all_specs()) {
    if (!test::takes_residual(spec)) continue;
    const size_t n = 2 * 4096 + 100;
    std::vector<float> residual(n, 0.0F);
    std::vector<double> gradients(n, 0), sent(n, 0);
    double largest = 0;  // residual; each step rounds it once where it is not exact
    for (uint64_t step = 0; step < 12; ++step) {
      const auto in = test::gradient(test::kGradientKinds[0], n, step);
      // The only rounding is that of in + residual; what it adds to the gradient counts as gradient here.
      for (size_t i = 0; i < n; ++i) gradients[i] += static_cast<double>(in[i] + residual[i]) - residual[i];
      const auto out = test::decode(test::encode(spec, in, {.residual = &residual}));
      for (size_t i = 0; i < n; ++i) sent[i] += out[i];
      largest = std::max(largest, static_cast<double>(absmax_of(residual)));
    }
    const double tolerance = test::loses_exactly(spec) ? 1e-13 : 12 * 0x1p-24 * largest;
    for (size_t i = 0; i < n; ++i) {
      ASSERT_NEAR(sent[i] + residual[i], gradients[i], tolerance) << to_string(spec) << " element " << i;
    }
  }
}

TEST(CodecProperties, AccumulatingAddsTheDecodedElements) {
  for_every_case([](const CodecSpec& spec, const test::GradientKind& kind, const std::vector<float>& in) {
    if (!kind.finite) return;
    const auto message = test::encode(spec, in, {.odd = true});
    const auto decoded = test::decode(message);
    auto sum = test::gradient(test::kGradientKinds[1], in.size(), 99);
    auto want = sum;
    for (size_t i = 0; i < in.size(); ++i) want[i] += decoded[i];
    test::decode_run(message, sum, Decode::kAdd);
    for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(sum[i], want[i]) << "element " << i;
  });
}

void check_bad_element(const CodecSpec& spec, float bad, size_t at) {
  const size_t block = info(spec.id).block;
  auto in = test::gradient(test::kGradientKinds[0], 10000, 1);
  in[at] = bad;
  const auto before = test::gradient(test::kGradientKinds[0], in.size(), 2);
  auto residual = before;
  const auto message = test::encode(spec, in, {.residual = test::takes_residual(spec) ? &residual : nullptr});
  EXPECT_TRUE(message.stats.non_finite);
  EXPECT_NE(read_header(message.wire()).flags & kWireNonFinite, 0);
  const auto out = test::decode(message);
  for (size_t i = 0; i < in.size(); ++i) {
    const bool in_bad_block = i / block == at / block;
    ASSERT_EQ(std::isfinite(out[i]), !in_bad_block) << "element " << i;
    ASSERT_EQ(std::isnan(out[i]), in_bad_block && (block > 1 || std::isnan(bad))) << "element " << i;
    const bool kept = std::bit_cast<uint32_t>(residual[i]) == std::bit_cast<uint32_t>(before[i]);
    ASSERT_TRUE(kept || !in_bad_block) << "residual of element " << i;
  }
}

TEST(CodecProperties, ANonFiniteElementMakesItsBlockNanSetsTheFlagAndLeavesTheResidual) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const CodecSpec& spec : test::all_specs()) {
    for (const float bad : {NAN, kInf, -kInf}) {
      for (const size_t at : {0, 4095, 4096, 9999}) {
        SCOPED_TRACE(fmt::format("{} {} at {}", to_string(spec), bad, at));
        check_bad_element(spec, bad, at);
      }
    }
  }
}

TEST(CodecProperties, AnOverflowOfInputPlusResidualCountsAsNotFinite) {
  for (const CodecSpec& spec : test::all_specs()) {
    if (!test::takes_residual(spec)) continue;
    const std::vector<float> in(200, 3e38F);
    std::vector<float> residual(200, 3e38F);
    EXPECT_TRUE(test::encode(spec, in, {.residual = &residual}).stats.non_finite) << to_string(spec);
    EXPECT_THAT(residual, testing::Each(3e38F)) << to_string(spec);
  }
}

TEST(CodecProperties, FiniteGradientsDecodeToFiniteNumbersAndSetNoFlag) {
  for_every_case([](const CodecSpec& spec, const test::GradientKind& kind, const std::vector<float>& in) {
    if (!kind.finite || spec.id == CodecId::kBf16) return;
    const auto message = test::encode(spec, in);
    EXPECT_FALSE(message.stats.non_finite);
    EXPECT_TRUE(message.stats.n_saturated == 0 || spec.id == CodecId::kMxfp8);
    EXPECT_EQ(read_header(message.wire()).flags, message.stats.n_saturated > 0 ? kWireSaturated : 0);
    for (const float x : test::decode(message)) ASSERT_TRUE(std::isfinite(x)) << x;
  });
}

TEST(CodecProperties, WhatMxfp8ClampsIsCounted) {
  std::vector<float> in(40, 1.0F);
  in[3] = 1.999F;  // of a scale of 2^-8: 512 less a bit, where 448 is the largest
  in[4] = -1.999F;
  in[35] = 1.7F;  // 435
  const auto message = test::encode({.id = CodecId::kMxfp8}, in);
  EXPECT_EQ(message.stats.n_saturated, 2U);
  const auto out = test::decode(message);
  EXPECT_EQ(out[3], 1.75F);
  EXPECT_EQ(out[4], -1.75F);
  EXPECT_EQ(out[5], 1.0F);
}

TEST(CodecProperties, ZeroBlocksDecodeToExactZeros) {
  for (const CodecSpec& spec : test::all_specs()) {
    for (const float zero : {0.0F, -0.0F}) {
      const std::vector<float> in(5000, zero);
      EXPECT_THAT(test::decode(test::encode(spec, in)), testing::Each(0.0F)) << to_string(spec);
    }
  }
}

TEST(CodecProperties, EveryMagnitudeSurvives) {
  for (const CodecSpec& spec : test::all_specs()) {
    for (const float absmax : {1e-45F, 1e-38F, 1e-30F, 1e-8F, 1.0F, 3e38F}) {
      std::vector<float> in(4096, absmax / 1000);
      in[17] = absmax;
      const auto out = test::decode(test::encode(spec, in));
      const double error = std::max(0.01 * static_cast<double>(absmax),
                                    spec.id == CodecId::kTopk ? 0 : info(spec.id).max_error(spec, absmax));
      const double tolerance = error + 0x1p-134;
      ASSERT_NEAR(static_cast<double>(out[17]), static_cast<double>(absmax), tolerance) << to_string(spec);
      for (const float x : out)
        ASSERT_LE(std::abs(static_cast<double>(x)), absmax + tolerance) << to_string(spec);
    }
  }
}

TEST(CodecProperties, TheBytesAreTheSameOnEveryInstructionSetAndAtEveryAddress) {
  for_every_case([](const CodecSpec& spec, const test::GradientKind&, const std::vector<float>& in) {
    const auto want = test::encode(spec, in);
    for (const std::string_view target : simd_targets()) {
      const OnlySimdTarget only(target);
      const auto got = test::encode(spec, in, {.odd = true});
      ASSERT_EQ(std::memcmp(got.wire(), want.wire(), want.n_wire_bytes()), 0) << target;
      const auto a = test::decode(got);
      const auto b = test::decode(want);
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_TRUE(a[i] == b[i] || (a[i] != a[i] && b[i] != b[i])) << target;
    }
  });
}

TEST(CodecProperties, ShortFloatsAreEncodedAsTheNumbersTheyAre) {
  for_every_case([](const CodecSpec& spec, const test::GradientKind& kind, const std::vector<float>& in) {
    for (const Dtype dtype : {Dtype::kBfloat16, Dtype::kFloat16}) {
      const auto values = test::rounded(in, dtype);
      std::vector<float> residual(in.size(), 0.01F), residual_of_floats = residual;
      const bool keeps = test::takes_residual(spec) && kind.finite;
      const auto short_message =
          test::encode(spec, in, {.residual = keeps ? &residual : nullptr, .dtype = dtype});
      const auto message = test::encode(spec, values, {.residual = keeps ? &residual_of_floats : nullptr});
      EXPECT_EQ(read_header(short_message.wire()).dtype, static_cast<uint8_t>(dtype));
      EXPECT_EQ(short_message.stats.non_finite, message.stats.non_finite) << name(dtype);
      const auto got = test::decode(short_message);
      const auto want = test::rounded(test::decode(message), dtype);
      for (size_t i = 0; i < in.size(); ++i) {
        ASSERT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])))
            << name(dtype) << " element " << i << ": " << got[i] << ", not " << want[i];
        ASSERT_TRUE(residual[i] == residual_of_floats[i] || !std::isfinite(values[i])) << name(dtype);
      }
    }
  });
}

TEST(CodecProperties, ASumOfSharesIsTheirSumInOrderRoundedOnce) {
  for_every_case([](const CodecSpec& spec, const test::GradientKind& kind, const std::vector<float>& in) {
    if (!kind.finite) return;
    for (const Dtype dtype : test::kEncodable) {
      const auto own = test::rounded(test::gradient(test::kGradientKinds[1], in.size(), 3), dtype);
      const auto first = test::encode(spec, in, {.dtype = dtype});
      const auto last = test::encode(spec, own, {.odd = true, .dtype = dtype});
      std::vector<float> want(in.size());
      test::decode_run(first, want, Decode::kSet);
      for (size_t i = 0; i < in.size(); ++i) want[i] += own[i];
      test::decode_run(last, want, Decode::kAdd);
      want = test::rounded(want, dtype);
      auto out = test::elements_of(own, dtype);  // the own share lies where the sum goes
      const Share shares[] = {{.wire = first.wire()}, {.elements = out.data()}, {.wire = last.wire()}};
      decode_sum(spec, shares, {out.data(), in.size(), dtype});
      const auto got = test::values_of(out, dtype);
      for (size_t i = 0; i < in.size(); ++i) {
        ASSERT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])))
            << name(dtype) << " element " << i << ": " << got[i] << ", not " << want[i];
      }
    }
  });
}

TEST(CodecProperties, ARunOfAMessageDecodesToItsElements) {
  const auto in = test::gradient(test::kGradientKinds[0], 3 * kRunGrain + 777, 5);
  for (const CodecSpec& spec : test::all_specs()) {
    const auto message = test::encode(spec, in);
    const auto want = test::decode(message);
    for (size_t begin = 0; begin < in.size(); begin += kRunGrain) {
      std::vector<float> run(std::min(kRunGrain, in.size() - begin), 3.0F);
      info(spec.id).decode_run({spec, message.wire(), in.size(), begin, run, Decode::kSet});
      EXPECT_THAT(run, testing::Pointwise(testing::FloatEq(), std::span(want).subspan(begin, run.size())))
          << to_string(spec) << " from " << begin;
    }
  }
}

}  // namespace
}  // namespace tern
