// sign1: blocks of 2048 floats as one bf16 scale, one bit per element (1: negative, element 8i in the lowest
// bit) and one bit per 64 elements (1: not all of them are zero).
//
// Decoded is -scale or +scale, and exactly 0 where all 64 are zero: rows of an embedding that saw no token
// stay as they are. The scale is the mean magnitude of the elements whose bit is 1, rounded to the nearest
// bf16 (finite): of all scales the one with the least squared error. The mean is summed in 16 partial sums,
// element i of a block in number i % 16, which are then added in halves (8, 4, 2, 1 apart). Source: Tang et
// al., "1-bit Adam", ICML 2021.
#pragma once

#include "kernels/block_codec.h"

namespace tern {

inline constexpr size_t kSignGranule = 64;
inline constexpr BlockShape kSign1Shape = {
    .block = 2048, .scale_bytes = 2, .code_bits = 1, .high_bits = 1, .high_group = kSignGranule};

/// Contraction: norm(v - v')^2 <= (1 - (1 - 2^-16) / 2048) norm(v)^2. A mean below 2^-134 gives zeros.
/// Bytes: 4 + 0.13 per element, 12 + 0.13 with a residual. Same bytes on every instruction set.
BlockCounts sign1_encode(const BlockInput& run, BlockPlanes out);
/// NaN for a non-finite block; kAdd touches nothing where 64 elements are zero. Bytes: 0.13 + 4 per element,
/// 0.13 + 8 for kAdd.
void sign1_decode(BlockView in, std::span<float> out, Decode how);

/// What the scalar and the vector kernel share.
inline constexpr size_t kSignSums = 16;
/// The scale's bf16 bits for n elements whose magnitudes, times `lift`, add up to the partial sums.
uint16_t sign1_scale(std::span<float, kSignSums> sums, size_t n, float lift);

namespace scalar {
BlockCounts sign1_encode(const BlockInput& run, BlockPlanes out);
void sign1_decode(BlockView in, std::span<float> out, Decode how);
}  // namespace scalar

}  // namespace tern
