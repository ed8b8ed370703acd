#include "kernels/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernels/samples.h"
#include "tests/kernels/simd_target.h"

namespace tern {
namespace {

class ConvertOnEveryTarget : public test::OnSimdTarget {};
TERN_ON_EVERY_SIMD_TARGET(ConvertOnEveryTarget);

template <class T>
std::vector<T> every_pattern() {
  std::vector<T> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<uint16_t>(i);
  return all;
}

/// Random bit patterns, and around every 16-bit pattern the values where rounding goes one way or the other.
std::vector<float> floats_that_round(uint64_t seed) {
  std::vector<float> out;
  Philox random(seed);
  for (int i = 0; i < 100000; ++i) out.push_back(std::bit_cast<float>(random.next()));
  for (uint32_t high = 0; high < 65536; ++high) {
    for (const uint32_t low : {0x0U, 0x1U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      out.push_back(std::bit_cast<float>(high << 16 | low));
    }
    const float half = to_float(Float16{static_cast<uint16_t>(high)});
    for (const uint32_t low : {0xFFFU, 0x1000U, 0x1001U}) {
      out.push_back(std::bit_cast<float>(std::bit_cast<uint32_t>(half) + low));
    }
  }
  return out;
}

template <class T>
void check_both_ways(size_t skew) {
  const auto narrow_in = every_pattern<T>();
  std::vector<float> wide(narrow_in.size());
  convert(std::span<const T>(narrow_in).subspan(skew), std::span(wide).subspan(skew));
  for (size_t i = skew; i < wide.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(to_float(narrow_in[i]))) << i;
  }
  const auto wide_in = floats_that_round(skew);
  std::vector<T> narrow_out(wide_in.size());
  convert(std::span<const float>(wide_in).subspan(skew), std::span(narrow_out).subspan(skew));
  for (size_t i = skew; i < wide_in.size(); ++i) {
    ASSERT_EQ(narrow_out[i].bits, narrow<T>(wide_in[i]).bits) << std::bit_cast<uint32_t>(wide_in[i]);
  }
}

TEST_P(ConvertOnEveryTarget, ConvertsLikeTheScalarFunctions) {
  for (const size_t skew : {0, 3}) {
    check_both_ways<Bfloat16>(skew);
    check_both_ways<Float16>(skew);
  }
}

TEST_P(ConvertOnEveryTarget, FindsTheLargestMagnitude) {
  for (size_t n = 0; n < 100; ++n) {
    std::vector<float> v(n, 0.5F);
    for (size_t i = 0; i < n; ++i) {
      v[i] = -2.0F;
      ASSERT_EQ(max_magnitude_bits(v), std::bit_cast<uint32_t>(2.0F)) << n << " " << i;
      v[i] = NAN;
      ASSERT_GT(max_magnitude_bits(v), 0x7F800000U) << n << " " << i;
      v[i] = 0.5F;
    }
  }
}

/// The nearest of the two neighbours in T's grid, the even one of a tie: by search, not by bit tricks.
template <class T>
void check_nearest(float x) {
  const T got = narrow<T>(x);
  const double value = to_float(got);
  for (const int neighbour : {-1, 1}) {
    const T other = {static_cast<uint16_t>(got.bits + neighbour)};
    if (((other.bits ^ got.bits) & 0x8000) != 0 || std::isnan(to_float(other))) continue;
    const double distance = std::abs(value - static_cast<double>(x));
    const double other_distance = std::abs(static_cast<double>(to_float(other)) - static_cast<double>(x));
    ASSERT_LE(distance, other_distance) << x;
    ASSERT_TRUE(distance < other_distance || got.bits % 2 == 0) << x << " is a tie";
  }
}

TEST(Convert, RoundsToTheNearestAndTiesToEven) {
  Philox random(1);
  for (int i = 0; i < 200000; ++i) {
    const auto x = std::ldexp(static_cast<float>(random.next() % 65536) / 65536 + 1,
                              static_cast<int>(random.next() % 40) - 25);
    if (x < 65504) check_nearest<Float16>(x);
    check_nearest<Bfloat16>(-x);
  }
  for (uint32_t i = 1; i < 2048; ++i)
    check_nearest<Float16>(static_cast<float>(i) * 0x1p-25F);  // subnormals and ties
}

TEST(Convert, KeepsSpecialValues) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_float16(65519.0F).bits, 0x7BFF);
  EXPECT_EQ(to_float16(65520.0F).bits, 0x7C00);
  EXPECT_EQ(to_float16(-kInf).bits, 0xFC00);
  EXPECT_EQ(to_float16(-0.0F).bits, 0x8000);
  EXPECT_EQ(to_float16(std::bit_cast<float>(0x7F800001U)).bits, 0x7E00)
      << "a signalling NaN becomes quiet, not inf";
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x7F800001U)).bits, 0x7FC0);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()).bits, 0x7F80);
  EXPECT_EQ(to_bfloat16(kInf).bits, 0x7F80);
  EXPECT_EQ(to_bfloat16(-0.0F).bits, 0x8000);
}

template <class T>
class Float8 : public testing::Test {};
using Float8Types = testing::Types<Float8E4m3, Float8E5m2>;
TYPED_TEST_SUITE(Float8, Float8Types);

TYPED_TEST(Float8, EveryPatternComesBackFromFp32) {
  using Traits = Float8Traits<TypeParam>;
  for (uint32_t bits = 0; bits < 256; ++bits) {
    const TypeParam x{static_cast<uint8_t>(bits)};
    const float wide = to_float(x);
    if (std::isfinite(wide)) {
      EXPECT_EQ(to_float8<TypeParam>(wide).bits, bits) << wide;
    } else if (std::isinf(wide)) {
      EXPECT_EQ(to_float8<TypeParam>(wide).bits & 0x7FU, Traits::kLargest);
    } else {
      EXPECT_EQ(to_float8<TypeParam>(wide).bits & 0x7FU, Traits::kQuietNan);
    }
  }
}

TYPED_TEST(Float8, RoundsToTheNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < Float8Traits<TypeParam>::kLargest; ++bits) {
    const float low = to_float(TypeParam{static_cast<uint8_t>(bits)});
    const float high = to_float(TypeParam{static_cast<uint8_t>(bits + 1)});
    ASSERT_LT(low, high);
    const float middle = (low + high) / 2;
    EXPECT_EQ(to_float8<TypeParam>(middle).bits, bits + (bits & 1)) << middle;
    EXPECT_EQ(to_float8<TypeParam>(std::nextafter(middle, 0.0F)).bits, bits);
    EXPECT_EQ(to_float8<TypeParam>(std::nextafter(-middle, -INFINITY)).bits, (bits + 1) | 0x80U);
  }
}

TEST(EightBitFloats, KnowTheFormatsOwnNumbers) {
  EXPECT_EQ(to_float(Float8E4m3{0x7E}), 448.0F);
  EXPECT_EQ(to_float(Float8E4m3{0x01}), 0x1p-9F);
  EXPECT_EQ(to_float(Float8E5m2{0x7B}), 57344.0F);
  EXPECT_EQ(to_float(Float8E5m2{0x01}), 0x1p-16F);
  EXPECT_EQ(to_float(Float8E5m2{0xFC}), -INFINITY);
}

}  // namespace
}  // namespace tern
