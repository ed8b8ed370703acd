// Conversions between fp32 and the short floats: round to nearest even, NaN stays NaN (made quiet). Overflow
// goes to inf in 16 bits, and to the largest number in 8 (as CUDA's and so NCCL's conversions do).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "runtime/base/element_types.h"

namespace tern {

constexpr float to_float(float x) {
  return x;
}
constexpr float to_float(Bfloat16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

constexpr float to_float(Float16 x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000) << 16;
  const uint32_t exponent = (x.bits >> 10) & 0x1F;
  const uint32_t mantissa = x.bits & 0x3FF;
  if (exponent == 0) {  // zero and subnormals: mantissa * 2^-24 is exact in fp32
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(mantissa) * 0x1p-24F));
  }
  if (exponent == 0x1F) {
    return std::bit_cast<float>(sign | 0x7F800000U | mantissa << 13 | (mantissa != 0 ? 0x400000U : 0U));
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

/// What distinguishes the 8-bit formats; the conversions are the same for both.
template <class T>
struct Float8Traits;
template <>
struct Float8Traits<Float8E4m3> {
  static constexpr int kMantissaBits = 3;
  static constexpr int kBias = 7;
  static constexpr uint32_t kLargest = 0x7E;  ///< 448
  static constexpr uint32_t kQuietNan = 0x7F;
  static constexpr uint32_t kFirstSpecial = 0x7F;  ///< no infinity, one NaN
};
template <>
struct Float8Traits<Float8E5m2> {
  static constexpr int kMantissaBits = 2;
  static constexpr int kBias = 15;
  static constexpr uint32_t kLargest = 0x7B;  ///< 57344
  static constexpr uint32_t kQuietNan = 0x7F;
  static constexpr uint32_t kFirstSpecial = 0x7C;  ///< infinity, then NaN
};
template <class T>
inline constexpr bool kIsFloat8 = std::is_same_v<T, Float8E4m3> || std::is_same_v<T, Float8E5m2>;

template <class T>
requires kIsFloat8<T>
constexpr float to_float(T x) {
  using Traits = Float8Traits<T>;
  constexpr int kShift = 23 - Traits::kMantissaBits;
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x80) << 24;
  const uint32_t magnitude = x.bits & 0x7F;
  if (magnitude >= Traits::kFirstSpecial) {
    const bool is_inf = Traits::kFirstSpecial != Traits::kQuietNan && magnitude == Traits::kFirstSpecial;
    return std::bit_cast<float>(sign | (is_inf ? 0x7F800000U : 0x7FC00000U));
  }
  if (magnitude >> Traits::kMantissaBits == 0) {  // zero and subnormals
    constexpr float kStep =
        std::bit_cast<float>(static_cast<uint32_t>(128 - Traits::kBias - Traits::kMantissaBits) << 23);
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(magnitude) * kStep));
  }
  return std::bit_cast<float>(sign |
                              ((magnitude << kShift) + (static_cast<uint32_t>(127 - Traits::kBias) << 23)));
}

template <class T>
requires kIsFloat8<T>
constexpr T to_float8(float x) {
  using Traits = Float8Traits<T>;
  constexpr int kShift = 23 - Traits::kMantissaBits;
  constexpr uint32_t kLeastNormal = static_cast<uint32_t>(128 - Traits::kBias) << 23;
  // Adding it rounds to a multiple of the least subnormal, in the hardware's own rounding.
  constexpr uint32_t kMagic = static_cast<uint32_t>(128 - Traits::kBias + kShift) << 23;
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = bits >> 24 & 0x80;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return {static_cast<uint8_t>(sign | Traits::kQuietNan)};
  uint32_t rounded = 0;
  if (magnitude < kLeastNormal) {
    const float shifted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kMagic);
    rounded = std::bit_cast<uint32_t>(shifted) - kMagic;
  } else {
    const uint32_t half = (1U << (kShift - 1)) - 1 + (magnitude >> kShift & 1);
    rounded = ((magnitude + half) >> kShift) -
              (static_cast<uint32_t>(127 - Traits::kBias) << Traits::kMantissaBits);
  }
  return {static_cast<uint8_t>(sign | (rounded > Traits::kLargest ? Traits::kLargest : rounded))};
}

constexpr Bfloat16 to_bfloat16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

/// Magnitudes whose bits are at least these round to an infinite bf16, or are one or NaN already.
inline constexpr uint32_t kBf16OverflowBits = 0x7F7F8000;

constexpr Float16 to_float16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return {static_cast<uint16_t>(sign | 0x7E00 | (magnitude >> 13 & 0x3FF))};
  if (magnitude >= 0x477FF000) return {static_cast<uint16_t>(sign | 0x7C00)};  // 65520 and above round to inf
  if (magnitude < 0x38800000) {  // below 2^-14: adding 0.5 lets the hardware round to a multiple of 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000))};
  }
  return {static_cast<uint16_t>(sign | (magnitude + 0xFFF + (magnitude >> 13 & 1) - (112U << 23)) >> 13)};
}

/// out[i] = in[i] in the other type; in.size() == out.size(), the ranges must not overlap.
/// Bytes moved: 6 per element. Same bytes as the functions above on every instruction set.
void convert(std::span<const float> in, std::span<Bfloat16> out);
void convert(std::span<const float> in, std::span<Float16> out);
void convert(std::span<const Bfloat16> in, std::span<float> out);
void convert(std::span<const Float16> in, std::span<float> out);

/// The largest bit pattern of |in[i]|, 0 when empty: >= 0x7F800000 exactly when an element is inf or NaN, and
/// otherwise the bits of the largest magnitude. Bytes moved: 4 per element.
uint32_t max_magnitude_bits(std::span<const float> in);

}  // namespace tern
