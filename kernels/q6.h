// q6: blocks of 32 floats as one bf16 scale = round_up(absmax / 31) and 32 six-bit integers in [-31, 31]:
// two's complement, the lower four bits in one plane (element 2i in the low nibble of a byte), the upper two
// in another (element 4i in the lowest bits).
#pragma once

#include "kernels/block_formats.h"

namespace tern {

using Q6 = IntFormat<6, 32>;

/// As q8_encode() with 31 for 127. Error: scale / 2 = 1.61 % of the block's absmax, x (1 + 2^-7) for the
/// scale. Bytes: 4 + 0.81 per element, 12 + 0.81 with a residual. Same bytes on every instruction set.
BlockCounts q6_encode(const BlockInput& run, BlockPlanes out);
/// code[i] * scale (exact), NaN for a non-finite block. Bytes: 0.81 + 4 per element, 0.81 + 8 for kAdd.
void q6_decode(BlockView in, std::span<float> out, Decode how);

}  // namespace tern
