// Conversions between fp32 and the 16-bit floats: round to nearest even, NaN stays NaN (made quiet), overflow
// to inf.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/dtype.h"

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
