// topk: of every block of 4096 floats exactly the k largest magnitudes, as 12-bit indices in ascending order,
// signed 8-bit values and one bf16 scale = round_up(absmax / 127). Of equal magnitudes the lower index is
// kept.
//
// A last block of m < 4096 elements keeps min(k, m). Index 2i and 2i+1 of a block share three bytes, low bits
// first; an odd last index takes two.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace tern {

inline constexpr size_t kTopkBlock = 4096;
inline constexpr int kTopkChoices[] = {16, 32, 64, 128};
inline constexpr size_t kTopkMax = 128;

/// How many entries n elements have at k per block, and the bytes of their index plane.
constexpr size_t topk_entries(size_t n, int k) {
  return n / kTopkBlock * static_cast<size_t>(k) + std::min(n % kTopkBlock, static_cast<size_t>(k));
}
constexpr size_t topk_index_bytes(size_t n, int k) {
  return (topk_entries(n, k) * 3 + 1) / 2;
}
constexpr size_t topk_blocks(size_t n) {
  return (n + kTopkBlock - 1) / kTopkBlock;
}

/// Where the encoded planes lie: topk_index_bytes bytes, topk_entries int8, topk_blocks bf16; any alignment.
struct TopkPlanes {
  std::byte* indices;
  std::byte* values;
  std::byte* scales;
};
struct TopkView {
  const std::byte* indices;
  const std::byte* values;
  const std::byte* scales;
};

/// Encodes v = in, or v = in + residual when residual is not null; residual (in.size() floats, not
/// overlapping `in`) then becomes v - decoded. k is one of kTopkChoices.
///
/// A block with a non-finite v gets the scale NaN, indices 0 .. k-1 and values 0, and leaves its residual as
/// it was. Bytes:  4 per element, 12 with a residual (`in` and residual read once, residual written). Returns
/// the number of non-finite blocks. Same bytes on every instruction set.
size_t topk_encode(std::span<const float> in, float* residual, int k, TopkPlanes out);

/// out = the kept values at their places and +0 elsewhere; NaN for a whole non-finite block. An index beyond
/// the last block's end (damaged bytes) is skipped. Bytes: 4 per element.
void topk_decode(TopkView in, int k, std::span<float> out);
/// Adds the kept values at their places and touches nothing else. Bytes: 8 per kept entry.
void topk_decode_accumulate(TopkView in, int k, std::span<float> out);

}  // namespace tern
