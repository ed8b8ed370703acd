// fp8: blocks of 128 floats as one bf16 scale = round_up(absmax / largest), largest = 448 for E4M3 and 57344
// for E5M2, and 128 bytes = nearest(v / scale) in that format, ties to even. Nothing is clamped: the largest
// value becomes `largest` at most.
#pragma once

#include "kernels/block_formats.h"

namespace tern {

template <class T>
struct ScaledFp8 : FloatFormat<T, uint8_t, 128, sizeof(Bfloat16)> {
  static constexpr uint16_t kNan = kNanScale.bits;
  static constexpr float kLargest = to_float(T{Float8Traits<T>::kLargest});
  static constexpr float kLimit = HUGE_VALF;  ///< what is a rounding above kLargest rounds to it
  static constexpr Scaling scaling(float absmax) { return bf16_scaling(absmax, kLargest); }
  static constexpr float step(uint16_t wire) { return to_float(Bfloat16{wire}); }
  static constexpr uint8_t code(float x) { return to_float8<T>(x).bits; }
  static constexpr bool saturates(float /*x*/) { return false; }
};

/// Error: 2^-4 (E4M3) or 2^-3 (E5M2) of the value; of the block's absmax 16/448 = 3.57 % or 4096/57344 = 7.14
/// %, x (1 + 2^-7) for the scale. Bytes: 4 + 1.016 per element. Same bytes on every instruction set.
BlockCounts fp8_e4m3_encode(const BlockInput& run, BlockPlanes out);
BlockCounts fp8_e5m2_encode(const BlockInput& run, BlockPlanes out);
/// element[i] * scale (exact), NaN for a non-finite block. Bytes: 1.016 + 4 per element, 1.016 + 8 for kAdd.
void fp8_e4m3_decode(BlockView in, std::span<float> out, Decode how);
void fp8_e5m2_decode(BlockView in, std::span<float> out, Decode how);

}  // namespace tern
