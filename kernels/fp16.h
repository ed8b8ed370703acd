// fp16: blocks of 128 floats as one bf16 scale, a power of two, and 128 halves = nearest(v / scale), ties to
// even.
//
// The scale is 2^(exponent of absmax - 14), at least 2^-126: the largest value becomes one below 2^15, so
// that nothing overflows, and dividing by it is exact. A bare cast would turn gradients above 65504 to inf
// and lose those below 1e-7.
#pragma once

#include "kernels/block_formats.h"

namespace tern {

struct ScaledFp16 : FloatFormat<Float16, uint16_t, 128, sizeof(Bfloat16)> {
  static constexpr uint16_t kNan = kNanScale.bits;
  static constexpr float kLimit = HUGE_VALF;  ///< nothing is clamped
  static constexpr Scaling scaling(float absmax) {
    const uint32_t exponent = std::max(std::bit_cast<uint32_t>(absmax) >> 23, 15U) - 14;  // biased
    return {.wire = static_cast<uint16_t>(exponent << 7),
            .step = std::bit_cast<float>(exponent << 23),
            .inverse = std::bit_cast<float>((254 - exponent) << 23)};
  }
  static constexpr float step(uint16_t wire) { return to_float(Bfloat16{wire}); }
  static constexpr Code code(float x) { return to_float16(x).bits; }
  static constexpr bool saturates(float /*x*/) { return false; }
};

/// Error: 2^-11 of the value, or 2^-39 of the block's absmax where that is more. Bytes: 4 + 2.016 per
/// element. Same bytes on every instruction set.
BlockCounts fp16_encode(const BlockInput& run, BlockPlanes out);
/// half[i] * scale (exact), NaN for a non-finite block. Bytes: 2.016 + 4 per element, 2.016 + 8 for kAdd.
void fp16_decode(BlockView in, std::span<float> out, Decode how);

}  // namespace tern
