// q8: blocks of 128 floats as one bf16 scale = round_up(absmax / 127) and 128 signed bytes.
#pragma once

#include "kernels/block_formats.h"

namespace tern {

using Q8 = IntFormat<8, 128>;

/// code[i] = nearest(v[i] / scale), ties to even, or rounded stochastically (see BlockInput).
///
/// Error:  |v - code * scale| <= scale / 2 (1 + 2^-16), below scale when stochastic. A block whose absmax is
///         below 2^-134 decodes to zeros.
/// Bytes:  4 + 1.016 per element, 12 + 1.016 with a residual; each block is read once into the first-level
///         cache. Same bytes on every instruction set.
BlockCounts q8_encode(const BlockInput& run, BlockPlanes out);
/// code[i] * scale (exact), NaN for a non-finite block. Bytes: 1.016 + 4 per element, 1.016 + 8 for kAdd.
void q8_decode(BlockView in, std::span<float> out, Decode how);

}  // namespace tern
