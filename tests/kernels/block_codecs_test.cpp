// Block codecs and topk: the vector kernels give the bytes of the scalar reference, whatever the input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/block_scalar.h"
#include "kernels/fp16.h"
#include "kernels/fp8.h"
#include "kernels/mxfp8.h"
#include "kernels/q5.h"
#include "kernels/q6.h"
#include "kernels/q8.h"
#include "kernels/scalar.h"
#include "kernels/topk.h"
#include "runtime/base/status.h"
#include "tests/kernels/gradients.h"
#include "tests/kernels/samples.h"
#include "tests/kernels/simd_target.h"

namespace tern {
namespace {

class BlockCodecsOnEveryTarget : public test::OnSimdTarget {};
TERN_ON_EVERY_SIMD_TARGET(BlockCodecsOnEveryTarget);

constexpr size_t kSizes[] = {0, 1, 5, 31, 127, 128, 129, 1000, 4095, 4096, 4097, 4096 + 40, 12288, 13000};

struct Encoded {
  std::vector<std::byte> bytes;
  std::vector<float> residual;
  size_t n_non_finite = 0;
  size_t n_saturated = 0;
};

/// Planes at odd addresses inside a buffer whose bytes outside of the planes must stay 0x5A.
struct OddPlanes {
  OddPlanes(std::initializer_list<size_t> sizes) {
    size_t total = 1;
    for (const size_t size : sizes) {
      offsets.push_back(total);
      total += size + 1 + size % 2;
    }
    bytes.assign(total, std::byte{0x5A});
  }
  std::byte* plane(size_t i) { return bytes.data() + offsets[i]; }
  std::vector<size_t> offsets;
  std::vector<std::byte> bytes;
};

/// A format's kernels and their definition.
struct BlockCase {
  std::string_view name;
  BlockShape shape;
  bool rounds;  ///< stochastically too
  BlockCounts (*encode)(const BlockInput&, BlockPlanes);
  void (*decode)(BlockView, std::span<float>, Decode);
  BlockCounts (*scalar_encode)(const BlockInput&, BlockPlanes);
  void (*scalar_decode)(BlockView, std::span<float>, Decode);
};
template <class Format>
BlockCase block_case(std::string_view name, decltype(BlockCase::encode) encode,
                     decltype(BlockCase::decode) decode) {
  return {name,
          Format::kShape,
          Format::kRounds,
          encode,
          decode,
          scalar::encode_blocks<Format>,
          scalar::decode_blocks<Format>};
}
std::vector<BlockCase> block_cases() {
  return {block_case<Q8>("q8", q8_encode, q8_decode),
          block_case<Q6>("q6", q6_encode, q6_decode),
          block_case<Q5>("q5", q5_encode, q5_decode),
          block_case<ScaledFp16>("fp16", fp16_encode, fp16_decode),
          block_case<ScaledFp8<Float8E4m3>>("fp8 e4m3", fp8_e4m3_encode, fp8_e4m3_decode),
          block_case<ScaledFp8<Float8E5m2>>("fp8 e5m2", fp8_e5m2_encode, fp8_e5m2_decode),
          block_case<Mxfp8>("mxfp8", mxfp8_encode, mxfp8_decode)};
}

OddPlanes odd_planes(const BlockShape& shape, size_t n) {
  return {shape.scales(n), shape.codes(n), shape.high(n)};
}
BlockPlanes planes_of(OddPlanes& odd) {
  return {.scales = odd.plane(0), .codes = odd.plane(1), .high = odd.plane(2)};
}
BlockView view_of(OddPlanes& odd) {
  return {.scales = odd.plane(0), .codes = odd.plane(1), .high = odd.plane(2)};
}

Encoded run_blocks(decltype(BlockCase::encode) encode, const BlockShape& shape, BlockInput run,
                   const std::vector<float>* residual) {
  OddPlanes planes = odd_planes(shape, run.in.size());
  Encoded out;
  if (residual != nullptr) out.residual = *residual;
  if (residual != nullptr) run.residual = out.residual.data();
  const BlockCounts counts = encode(run, planes_of(planes));
  out.n_non_finite = counts.n_non_finite;
  out.n_saturated = counts.n_saturated;
  out.bytes = planes.bytes;
  return out;
}

using TopkEncode = size_t (*)(std::span<const float>, float*, int, TopkPlanes);
Encoded run_topk(TopkEncode encode, std::span<const float> in, int k, const std::vector<float>* residual) {
  const size_t n = in.size();
  OddPlanes planes({topk_index_bytes(n, k), topk_entries(n, k), topk_blocks(n) * 2});
  Encoded out;
  if (residual != nullptr) out.residual = *residual;
  out.n_non_finite =
      encode(in, residual != nullptr ? out.residual.data() : nullptr, k,
             {.indices = planes.plane(0), .values = planes.plane(1), .scales = planes.plane(2)});
  out.bytes = planes.bytes;
  return out;
}

void expect_same(const Encoded& got, const Encoded& want, const std::string& what) {
  EXPECT_EQ(got.n_non_finite, want.n_non_finite) << what;
  EXPECT_EQ(got.n_saturated, want.n_saturated) << what;
  EXPECT_EQ(got.bytes, want.bytes) << what;
  ASSERT_EQ(got.residual.size(), want.residual.size());
  if (got.residual.empty()) return;
  EXPECT_EQ(std::memcmp(got.residual.data(), want.residual.data(), want.residual.size() * sizeof(float)), 0)
      << what;
}

/// Calls check(in, residual or null, text) for every kind of gradient and size, one float off any alignment.
template <class Check>
void for_every_input(Check check) {
  for (const test::GradientKind& kind : test::kGradientKinds) {
    for (const size_t n : kSizes) {
      const auto buffer = test::gradient(kind, n + 1, 7);
      const std::span<const float> in = std::span(buffer).subspan(1);
      auto residual = test::gradient(test::kGradientKinds[0], n, 11);
      for (float& r : residual) r *= 0.1F;
      check(in, static_cast<const std::vector<float>*>(nullptr), fmt::format("{} n={}", kind.name, n));
      check(in, &residual, fmt::format("{} n={} with residual", kind.name, n));
    }
  }
}

TEST_P(BlockCodecsOnEveryTarget, BlocksAreTheBytesOfTheScalarReference) {
  for_every_input([](std::span<const float> in, const std::vector<float>* residual, const std::string& what) {
    for (const BlockCase& c : block_cases()) {
      for (const bool stochastic : {false, true}) {
        if (stochastic && !c.rounds) continue;
        // Element numbers that are no multiple of four, around one where the block number's upper half
        // changes.
        const BlockInput run = {
            .in = in, .stochastic = stochastic, .random = {.step = 3, .first = (uint64_t{1} << 34) - 1001}};
        expect_same(run_blocks(c.encode, c.shape, run, residual),
                    run_blocks(c.scalar_encode, c.shape, run, residual),
                    fmt::format("{} {}{}", c.name, what, stochastic ? " stochastic" : ""));
      }
    }
  });
}

TEST_P(BlockCodecsOnEveryTarget, TopkWritesTheBytesOfTheScalarReference) {
  for_every_input([](std::span<const float> in, const std::vector<float>* residual, const std::string& what) {
    for (const int k : kTopkChoices) {
      expect_same(run_topk(topk_encode, in, k, residual), run_topk(scalar::topk_encode, in, k, residual),
                  fmt::format("{} k={}", what, k));
    }
  });
}

TEST_P(BlockCodecsOnEveryTarget, DecodingMatchesTheScalarReference) {
  for_every_input([](std::span<const float> in, const std::vector<float>* residual, const std::string& what) {
    if (residual != nullptr) return;
    for (const BlockCase& c : block_cases()) {
      OddPlanes planes = odd_planes(c.shape, in.size());
      c.scalar_encode({.in = in}, planes_of(planes));
      std::vector<float> got(in.size(), 1.5F), want(in.size(), 1.5F);
      for (const Decode how : {Decode::kAdd, Decode::kSet}) {
        c.decode(view_of(planes), got, how);
        c.scalar_decode(view_of(planes), want, how);
        for (size_t i = 0; i < in.size(); ++i)
          ASSERT_TRUE(test::same_element(got[i], want[i])) << c.name << " " << what << " element " << i;
      }
    }
  });
}

TEST_P(BlockCodecsOnEveryTarget, TopkDecodesToTheKLargestOfEachBlock) {
  const auto in = test::gradient(test::kGradientKinds[1], 3 * kTopkBlock, 3);
  for (const int k : kTopkChoices) {
    OddPlanes planes({topk_index_bytes(in.size(), k), topk_entries(in.size(), k), 6});
    topk_encode(in, nullptr, k, {planes.plane(0), planes.plane(1), planes.plane(2)});
    std::vector<float> out(in.size(), 9.0F);
    topk_decode({planes.plane(0), planes.plane(1), planes.plane(2)}, k, out);
    for (size_t begin = 0; begin < in.size(); begin += kTopkBlock) {
      std::vector<float> sorted(in.begin() + static_cast<long>(begin),
                                in.begin() + static_cast<long>(begin + kTopkBlock));
      std::sort(sorted.begin(), sorted.end(), [](float a, float b) { return std::abs(a) > std::abs(b); });
      const float kth = std::abs(sorted[static_cast<size_t>(k) - 1]);
      const float half_step = to_float(scale_of(std::abs(sorted[0]))) / 2;
      for (size_t i = begin; i < begin + kTopkBlock; ++i) {
        const float want = std::abs(in[i]) >= kth ? in[i] : 0.0F;  // no ties in this input
        ASSERT_NEAR(out[i], want, want == 0.0F ? 0.0F : half_step * 1.0001F) << "k=" << k << " element " << i;
      }
    }
  }
}

TEST(TopkPacking, KeepsTheLowerIndexOfTiesInTwelveBitsLowFirst) {
  std::vector<float> in(kTopkBlock, -1.0F);
  in[4095] = 2.0F;
  OddPlanes planes({topk_index_bytes(in.size(), 16), 16, 2});
  topk_encode(in, nullptr, 16, {planes.plane(0), planes.plane(1), planes.plane(2)});
  // indices 0 .. 14 and 4095: pairs (0, 1) = 00 10 00, (2, 3) = 02 30 00, ..., (14, 4095) = 0E F0 FF
  const auto at = [&](size_t i) { return std::to_integer<int>(planes.plane(0)[i]); };
  EXPECT_EQ(at(0), 0x00);
  EXPECT_EQ(at(1), 0x10);
  EXPECT_EQ(at(3), 0x02);
  EXPECT_EQ(at(4), 0x30);
  EXPECT_EQ(at(21), 0x0E);
  EXPECT_EQ(at(22), 0xF0);
  EXPECT_EQ(at(23), 0xFF);
  EXPECT_EQ(static_cast<int8_t>(planes.plane(1)[15]), 126);  // 2 / round_up(2 / 127)
  EXPECT_EQ(static_cast<int8_t>(planes.plane(1)[0]), -63);
}

TEST(TopkDecode, SkipsAnIndexBeyondTheLastBlock) {
  const std::vector<std::byte> indices(24, std::byte{0xFF});  // sixteen times 4095
  const std::vector<std::byte> values(16, std::byte{1});
  const std::vector<std::byte> scale = {std::byte{0x80}, std::byte{0x3F}};  // 1.0
  std::vector<float> out(100, 0.0F);
  topk_decode_accumulate({indices.data(), values.data(), scale.data()}, 16, out);
  EXPECT_THAT(out, testing::Each(0.0F));
}

TEST(BlockScale, IsTheSmallestBf16AtLeastAbsmaxOver127) {
  for (const float absmax :
       {1e-45F, 1e-41F, 1e-38F, 1e-30F, 1e-8F, 0.1F, 1.0F, 127.0F, 128.0F, 3e38F, 3.4028235e38F}) {
    const Bfloat16 scale = scale_of(absmax);
    EXPECT_GE(static_cast<double>(to_float(scale)), static_cast<double>(absmax) / 127 * (1 - 0x1p-24))
        << absmax;
    const float below = to_float(Bfloat16{static_cast<uint16_t>(scale.bits - 1)});
    EXPECT_LT(static_cast<double>(below), static_cast<double>(absmax) / 127) << absmax;
  }
  EXPECT_EQ(scale_of(0.0F).bits, 0);
}

TEST(NearestCode, RoundsTiesToEven) {
  for (int c = -127; c <= 127; ++c) {
    EXPECT_EQ(nearest_code(static_cast<float>(c)), c);
    if (c == 127) continue;
    const float tie = static_cast<float>(c) + 0.5F;
    EXPECT_EQ(nearest_code(tie), c % 2 == 0 ? c : c + 1) << tie;
    EXPECT_EQ(nearest_code(std::nextafter(tie, 1e9F)), c + 1) << tie;
    EXPECT_EQ(nearest_code(std::nextafter(tie, -1e9F)), c) << tie;
  }
}

}  // namespace
}  // namespace tern
