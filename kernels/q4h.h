// q4h: blocks of 128 floats as one bf16 scale = round_up(absmax / 7) and 128 four-bit integers in [-7, 7]
// (two's complement, element 2i in the low nibble of a byte) of rotated values.
//
// Each 32 values v of a block are rotated to y = (H D v) / 32: D flips the signs of those whose bit of a
// Philox word is set, H is the 32-point Walsh-Hadamard matrix of +-1 in natural order. A heavy tail is spread
// over 32 values, so that absmax comes down. Decoded is v' = D H (code * scale), which is exact: H sums 32
// integers. Signs: bit i % 32 of word i / 32 of Philox(kElementSeed, step)'s block number first + begin of
// the block, i.e. of the global index of the block's first element, with bit 63 set: other numbers than those
// that round. A last block is filled up with zeros to a multiple of 32, and so are its codes. Source: Suresh,
// Yu, Kumar & McMahan, "Distributed mean estimation with limited communication", ICML 2017.
#pragma once

#include "kernels/block_formats.h"

namespace tern {

inline constexpr size_t kRotation = 32;

struct Q4h : IntFormat<4, 128> {
  static constexpr BlockShape kShape = {
      .block = 128, .scale_bytes = sizeof(Bfloat16), .code_bits = 4, .code_group = kRotation};
};

/// What a block of this absmax is multiplied by, so that sums of 32 values stay within the range of fp32.
constexpr float q4h_lift(float absmax) {
  return absmax < 0x1p-80F ? 0x1p64F : absmax < 0x1p120F ? 1.0F : 0x1p-8F;
}

/// Butterflies in fp32, in the order of distances 1, 2, 4, 8, 16: part of the format, because they round.
/// Blocks whose absmax is below 2^-80 or from 2^120 on are multiplied by 2^64 or 2^-8 meanwhile. Error:  |y -
/// code * scale| <= scale / 2, so |v' - v| <= 16 scale, and norm(v' - v) / norm(v) as for y. Bytes:  4 + 0.52
/// per element, 12 + 0.52 with a residual. Same bytes on every instruction set.
BlockCounts q4h_encode(const BlockInput& run, BlockPlanes out);
/// `random` as it was for encoding. NaN for a non-finite block. Bytes: 0.52 + 4 per element, 0.52 + 8 for
/// kAdd.
void q4h_decode(BlockView in, std::span<float> out, Decode how, const ElementRandom& random);

namespace scalar {
BlockCounts q4h_encode(const BlockInput& run, BlockPlanes out);
void q4h_decode(BlockView in, std::span<float> out, Decode how, const ElementRandom& random);
}  // namespace scalar

}  // namespace tern
