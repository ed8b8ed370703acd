#include "bench/perf_pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "bench/perf_gradient.h"
#include "kernels/reduce.h"
#include "runtime/base/philox.h"
#include "runtime/codec/decode.h"

namespace tern::bench {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<Bytes> sent(const TestData& data, int n_ranks, size_t n_bytes, size_t n) {
  std::vector<Bytes> ranks;
  for (int r = 0; r < n_ranks; ++r) {
    ranks.emplace_back(n_bytes);
    data.fill(r, n, ranks.back().data());
  }
  return ranks;
}

/// Reduces in the given order, two at a time, so that 16-bit types round after every step.
Bytes reduce_in_order(const Pattern::Key& key, const std::vector<Bytes>& ranks,
                      const std::vector<size_t>& order) {
  const size_t n = ranks[0].size() / size_of(key.dtype);
  const auto operand = [&](size_t rank) {
    Bytes x = ranks[rank];
    if (key.op == Op::kPremulSum)
      scale({key.dtype, x.data(), x.data(), premul_factor(static_cast<int>(rank)), n});
    return x;
  };
  Bytes result = operand(order[0]);
  for (size_t i = 1; i < order.size(); ++i) {
    const Bytes next = operand(order[i]);
    const void* operands[] = {result.data(), next.data()};
    reduce(key.dtype, key.op, result.data(), {operands, n});
  }
  if (key.op == Op::kAvg) average(key.dtype, result.data(), key.n_ranks, n);
  return result;
}

TEST(PerfPattern, AnyOrderOfReductionIsRight) {
  constexpr size_t kCount = 500;
  const std::vector<Origin> origins = {{Origin::kReduced, 0, kCount}};
  for (const DtypeInfo& dtype : kDtypes) {
    for (size_t op = 0; op < kOpNames.size(); ++op) {
      for (const int n_ranks : {1, 2, 3, 7, 17, 300}) {
        // 300 ranks are more than bf16 and uint8 have exact integers; elsewhere they would only take time.
        if (n_ranks == 300 && (dtype.size > 2 || dtype.dtype == Dtype::kFloat16 || op != 0)) continue;
        const Pattern::Key key = {
            .dtype = dtype.dtype, .op = static_cast<Op>(op), .n_ranks = n_ranks, .seed = 5};
        const Pattern pattern(key);
        const std::vector<Bytes> ranks = sent(pattern, n_ranks, kCount * dtype.size, kCount);
        std::vector<size_t> order(ranks.size());
        std::iota(order.begin(), order.end(), 0);
        for (uint64_t shuffle = 0; shuffle < 3; ++shuffle) {
          const Bytes result = reduce_in_order(key, ranks, order);
          EXPECT_EQ(pattern.judge(origins, result.data()).n_wrong, 0U)
              << dtype.name << " " << kOpNames[op] << " p " << n_ranks << " shuffle " << shuffle;
          Philox random(shuffle);
          for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
        }
      }
    }
  }
}

TEST(PerfPattern, AMissingContributionIsWrongInMostElements) {
  constexpr size_t kCount = 4000;
  for (const DtypeInfo& dtype : kDtypes) {
    const Pattern::Key key = {.dtype = dtype.dtype, .n_ranks = 4};
    const Pattern pattern(key);
    const std::vector<Bytes> ranks = sent(pattern, 4, kCount * dtype.size, kCount);
    const Bytes result = reduce_in_order(key, ranks, {0, 1, 3});
    // 8-bit floats have so few exact integers that a share is often zero.
    const size_t most = dtype.is_float && dtype.size == 1 ? kCount * 3 / 4 : kCount * 9 / 10;
    EXPECT_GT(pattern.judge(std::vector<Origin>{{Origin::kReduced, 0, kCount}}, result.data()).n_wrong, most)
        << dtype.name;
  }
}

TEST(PerfPattern, DataOfAnotherPlaceRankOrSeedIsWrong) {
  constexpr size_t kCount = 100000;  // longer than the period
  const Pattern pattern({.n_ranks = 4, .seed = 1});
  std::vector<float> buffer(kCount);
  pattern.fill(2, kCount, buffer.data());
  const auto wrong = [&](const Pattern& other, Origin origin) {
    return other.judge(std::vector<Origin>{origin}, buffer.data()).n_wrong;
  };
  EXPECT_EQ(wrong(pattern, {2, 0, kCount}), 0U);
  EXPECT_GT(wrong(pattern, {3, 0, kCount}), kCount * 9 / 10);
  EXPECT_GT(wrong(pattern, {2, 4096, kCount}), kCount * 9 / 10);
  EXPECT_GT(wrong(Pattern({.n_ranks = 4, .seed = 2}), {2, 0, kCount}), kCount * 9 / 10);
}

TEST(PerfPattern, OneChangedBitIsOneWrongElement) {
  constexpr size_t kCount = 70000;
  const Pattern pattern({.n_ranks = 2});
  std::vector<float> buffer(kCount);
  pattern.fill(1, kCount, buffer.data());
  buffer[Pattern::kPeriod + 17] = std::nextafter(buffer[Pattern::kPeriod + 17], 1e30F);
  EXPECT_EQ(pattern.judge(std::vector<Origin>{{1, 0, kCount}}, buffer.data()).n_wrong, 1U);
}

TEST(PerfPattern, AveragesMayBeTwoUnitsOff) {
  constexpr size_t kCount = 64;
  const std::vector<Origin> origins = {{Origin::kReduced, 0, kCount}};
  const Pattern::Key key = {.op = Op::kAvg, .n_ranks = 3};
  const Pattern pattern(key);
  const Bytes exact = reduce_in_order(key, sent(pattern, 3, kCount * 4, kCount), {0, 1, 2});
  std::vector<float> result(kCount);
  const auto moved = [&](int n_units) {
    std::memcpy(result.data(), exact.data(), exact.size());
    for (int i = 0; i < n_units; ++i) result[9] = std::nextafter(result[9], 1e30F);
    return pattern.judge(origins, result.data()).n_wrong;
  };
  EXPECT_EQ(moved(2), 0U);
  EXPECT_EQ(moved(3), 1U);
}

/// What a compressed all-reduce gives: every rank's share decoded, summed, encoded again.
std::vector<float> through_codec(const GradientData& data, const GradientData::Key& key, size_t n,
                                 int n_summed) {
  const CodecInfo& codec = info(key.codec.id);
  const auto there_and_back = [&](std::vector<float>& values) {
    std::vector<std::byte> wire(codec.wire_bytes(key.codec, Dtype::kFloat32, n));
    std::vector<float> residual(n);
    codec.encode({.in = std::span(values),
                  .residual = codec.residual == ResidualUse::kMandatory ? residual.data() : nullptr,
                  .wire = wire.data(),
                  .spec = key.codec});
    decode(key.codec, wire.data(), std::span(values));
  };
  std::vector<float> sum(n);
  for (int r = 0; r < n_summed; ++r) {
    std::vector<float> values(n);
    data.fill(r, n, values.data());
    there_and_back(values);
    for (size_t i = 0; i < n; ++i) sum[i] += values[i];
  }
  if (key.op == Op::kAvg)
    for (float& x : sum) x /= static_cast<float>(key.n_ranks);
  there_and_back(sum);
  return sum;
}

TEST(PerfGradient, EveryCodecStaysWithinItsBound) {
  constexpr size_t kCount = 10000;
  const std::vector<Origin> origins = {{Origin::kReduced, 0, kCount}};
  for (const CodecInfo& codec : codecs()) {
    for (const Op op : {Op::kSum, Op::kAvg}) {
      const GradientData::Key key = {.codec = {.id = codec.id}, .op = op, .n_ranks = 4, .seed = 3};
      const GradientData data(key);
      const Verdict verdict = data.judge(origins, through_codec(data, key, kCount, 4).data());
      EXPECT_EQ(verdict.n_wrong, 0U) << codec.name << " " << name(op);
      EXPECT_GT(verdict.exact_squared, 0);
      EXPECT_LE(verdict.error_squared, verdict.exact_squared) << codec.name;
    }
  }
}

TEST(PerfGradient, SharesAndResultsAreElementsOfTheType) {
  for (const Dtype dtype : {Dtype::kBfloat16, Dtype::kFloat16}) {
    const GradientData data({.codec = {.id = CodecId::kQ8}, .dtype = dtype, .n_ranks = 1, .seed = 3});
    std::vector<Float16> elements(1000);
    data.fill(0, elements.size(), elements.data());
    const std::vector<Origin> origins = {{Origin::kReduced, 0, elements.size()}};
    EXPECT_EQ(data.judge(origins, elements.data()).error_squared, 0) << name(dtype);
    elements[7].bits ^= 0x8000;
    elements[7].bits |= 0x4000;
    EXPECT_EQ(data.judge(origins, elements.data()).n_wrong, 1U) << name(dtype);
  }
}

TEST(PerfGradient, AMissingRankIsOutsideTheBoundOfAccurateCodecs) {
  constexpr size_t kCount = 10000;
  const GradientData::Key key = {.codec = {.id = CodecId::kQ8}, .n_ranks = 4, .seed = 3};
  const GradientData data(key);
  const Verdict verdict = data.judge(std::vector<Origin>{{Origin::kReduced, 0, kCount}},
                                     through_codec(data, key, kCount, 3).data());
  EXPECT_GT(verdict.n_wrong, kCount / 2);
}

TEST(PerfGradient, NotANumberIsWrong) {
  const GradientData data({.n_ranks = 1});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(data.judge(std::vector<Origin>{{Origin::kReduced, 0, 1}}, &nan).n_wrong, 1U);
}

}  // namespace
}  // namespace tern::bench
