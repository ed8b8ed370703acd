// One bf16 scale and 8-bit codes for a block of floats: the arithmetic that q8 and topk share.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/convert.h"

namespace tern {

/// Codes lie in [-127, 127]; -128 is never written.
inline constexpr float kMaxCode = 127.0F;
/// The scale of a block that holds an inf or a NaN: every code times it is NaN.
inline constexpr Bfloat16 kNanScale = {0x7FC0};
inline constexpr uint32_t kInfinityBits = 0x7F800000;

constexpr uint32_t magnitude_bits(float x) {
  return std::bit_cast<uint32_t>(x) & 0x7FFFFFFF;
}

/// The smallest bf16 that is >= absmax / 127 (rounded up, so that absmax / scale <= 127); 0 only for absmax
/// 0.
constexpr Bfloat16 scale_of(float absmax) {
  auto bits = std::bit_cast<uint32_t>(absmax / kMaxCode);
  if (bits == 0 && absmax != 0.0F) bits = 1;  // the division underflowed
  return {static_cast<uint16_t>((bits + 0xFFFF) >> 16)};
}

/// Added to a float below 2^22 in magnitude, it leaves the nearest integer (ties to even) in the low mantissa
/// bits, on every processor and without a conversion: the low byte is the two's complement code.
inline constexpr float kRoundingShift = 0x1.8p23F;
constexpr int8_t nearest_code(float x) {
  return static_cast<int8_t>(std::bit_cast<uint32_t>(x + kRoundingShift));
}

}  // namespace tern
