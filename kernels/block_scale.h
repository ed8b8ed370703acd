// Scales of blocks and codes of elements: the arithmetic that the block formats share.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/convert.h"

namespace tern {

/// 8-bit codes lie in [-127, 127]; -128 is never written.
inline constexpr float kMaxCode = 127.0F;
/// The scale of a block that holds an inf or a NaN: every code times it is NaN.
inline constexpr Bfloat16 kNanScale = {0x7FC0};
inline constexpr uint32_t kInfinityBits = 0x7F800000;

constexpr uint32_t magnitude_bits(float x) {
  return std::bit_cast<uint32_t>(x) & 0x7FFFFFFF;
}

/// The smallest bf16 that is >= absmax / most (rounded up, so that absmax / scale <= most); 0 only for absmax
/// 0.
constexpr Bfloat16 scale_of(float absmax, float most = kMaxCode) {
  auto bits = std::bit_cast<uint32_t>(absmax / most);
  if (bits == 0 && absmax != 0.0F) bits = 1;  // the division underflowed
  return {static_cast<uint16_t>((bits + 0xFFFF) >> 16)};
}

/// Added to a float below 2^22 in magnitude, it leaves the nearest integer (ties to even) in the low mantissa
/// bits, on every processor and without a conversion: the low byte is the two's complement code.
inline constexpr float kRoundingShift = 0x1.8p23F;
constexpr int8_t nearest_code(float x) {
  return static_cast<int8_t>(std::bit_cast<uint32_t>(x + kRoundingShift));
}

/// The integer below x or the one above, the latter for a share of all u in [0, 1) that is the distance from
/// the one below; within [-most, most], which x may exceed by a rounding.
/// A template, so that clang lets it be constexpr, which nvcc asks for, in spite of std::floor.
template <class Float>
constexpr int8_t stochastic_code(Float x, Float u, Float most) {
  return static_cast<int8_t>(std::min(std::max(std::floor(x + u), -most), most));
}

/// Sixteen bits, so that x + u of a code is exact and never reaches the integer after the next.
constexpr float stochastic_offset(uint32_t random) {
  return static_cast<float>(random >> 16) * 0x1p-16F;
}

/// From this absmax on the nearest code times the step may overflow: the nearest one that is finite is taken.
inline constexpr uint32_t kHugeBits = 0x7F000000;  // 2^127

/// How a block's values become numbers that are rounded to codes, and back.
struct Scaling {
  uint16_t wire = 0;  ///< the scale as it travels
  float step = 0;     ///< decoded = code * step, exactly
  float inverse = 0;  ///< what is rounded = value * lift * inverse
  float lift = 1;     ///< 2^64 where 1 / step would overflow
};

/// A bf16 scale rounded up, so that no value is beyond `most`. absmax is finite.
constexpr Scaling bf16_scaling(float absmax, float most) {
  constexpr float kTiny = 0x1p-100F;
  const Bfloat16 scale = scale_of(absmax, most);
  Scaling s{.wire = scale.bits, .step = to_float(scale)};
  if (absmax == 0.0F) return s;
  s.lift = absmax < kTiny ? 0x1p64F : 1.0F;
  s.inverse = 1.0F / (s.step * s.lift);
  return s;
}
inline float bf16_step(const std::byte* scale) {
  Bfloat16 bits;
  std::memcpy(&bits, scale, sizeof(bits));
  return to_float(bits);
}

}  // namespace tern
