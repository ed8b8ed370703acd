// q5: blocks of 32 floats as one bf16 scale = round_up(absmax / 15) and 32 five-bit integers in [-15, 15]:
// two's complement, the lower four bits in one plane (element 2i in the low nibble of a byte), the sign bit
// in another (element 8i in the lowest bit).
#pragma once

#include "kernels/block_formats.h"

namespace tern {

using Q5 = IntFormat<5, 32>;

/// As q8_encode() with 15 for 127. Error: scale / 2 = 3.33 % of the block's absmax, x (1 + 2^-7) for the
/// scale. Bytes: 4 + 0.69 per element, 12 + 0.69 with a residual. Same bytes on every instruction set.
BlockCounts q5_encode(const BlockInput& run, BlockPlanes out);
/// code[i] * scale (exact), NaN for a non-finite block. Bytes: 0.69 + 4 per element, 0.69 + 8 for kAdd.
void q5_decode(BlockView in, std::span<float> out, Decode how);

}  // namespace tern
