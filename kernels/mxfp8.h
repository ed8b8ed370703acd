// mxfp8: the OCP Microscaling format MXFP8 with E4M3 elements: blocks of 32 floats as one E8M0 scale, a power
// of two, and 32 bytes = nearest(v / scale), ties to even.
//
// scale = 2^(exponent of absmax - 8), as the specification has it, so a value may be beyond the largest
// element, 448, by up to 512: it is clamped, and counted when it is not nearer to 448 than to what would come
// next (464). E8M0 is the exponent + 127; 255 is NaN. For exchange with others that speak MX; fp8 is more
// accurate. Source: OCP Microscaling Formats (MX) Specification 1.0, 2023.
#pragma once

#include "kernels/block_formats.h"

namespace tern {

struct Mxfp8 : FloatFormat<Float8E4m3, uint8_t, 32, 1> {
  static constexpr uint16_t kNan = 0xFF;
  static constexpr float kLimit = 464;
  static constexpr Scaling scaling(float absmax) {
    const uint32_t exponent = std::max(std::bit_cast<uint32_t>(absmax) >> 23, 8U) - 8;  // biased, as E8M0 is
    return {.wire = static_cast<uint16_t>(exponent),
            .step = power_of_two(exponent),
            .inverse = power_of_two(254 - exponent)};
  }
  static constexpr float step(uint16_t exponent) {
    return exponent == kNan ? to_float(kNanScale) : power_of_two(exponent);
  }
  static constexpr uint8_t code(float x) { return to_float8<Float8E4m3>(x).bits; }
  static constexpr bool saturates(float x) { return std::abs(x) > kLimit; }

 private:
  /// 2^(exponent - 127); 2^-127 is subnormal.
  static constexpr float power_of_two(uint32_t exponent) {
    return std::bit_cast<float>(exponent == 0 ? 0x400000U : exponent << 23);
  }
};

/// Error: 2^-4 of the value, 12.5 % of absmax where it is clamped. A block whose absmax is below 2^-137
/// decodes to zeros. Bytes: 4 + 1.031 per element. Same bytes on every instruction set.
BlockCounts mxfp8_encode(const BlockInput& run, BlockPlanes out);
/// element[i] * scale (exact), NaN for a non-finite block. Bytes: 1.031 + 4 per element, 1.031 + 8 for kAdd.
void mxfp8_decode(BlockView in, std::span<float> out, Decode how);

}  // namespace tern
