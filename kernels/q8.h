// q8: blocks of 128 floats as one bf16 scale = round_up(absmax / 127) and 128 signed bytes.
#pragma once

#include <cstddef>
#include <span>

namespace tern {

inline constexpr size_t kQ8Block = 128;
constexpr size_t q8_blocks(size_t n) {
  return (n + kQ8Block - 1) / kQ8Block;
}

/// Where the encoded planes of n elements lie: q8_blocks(n) bf16 and n int8, little endian, any alignment.
struct Q8Planes {
  std::byte* scales;
  std::byte* codes;
};
struct Q8View {
  const std::byte* scales;
  const std::byte* codes;
};

/// code[i] = nearest(v[i] / scale), ties to even, of v = in, or v = in + residual when residual is not null;
/// residual (in.size() floats, not overlapping `in`) then becomes v - code * scale, exactly rounded once.
///
/// A block with a non-finite v gets the scale NaN and codes 0, and leaves its residual as it was.
/// Error:  |v - code * scale| <= scale / 2 (1 + 2^-16). A block whose absmax is below 2^-134 decodes to
/// zeros. Bytes:  4 + 1.016 per element, 12 + 1.016 with a residual; each block is read once into the
/// first-level cache. Returns the number of non-finite blocks. Same bytes on every instruction set.
size_t q8_encode(std::span<const float> in, float* residual, Q8Planes out);

/// out[i] = code[i] * scale (exact), NaN for a non-finite block. Bytes: 1.016 + 4 per element.
void q8_decode(Q8View in, std::span<float> out);
/// out[i] += code[i] * scale, rounded once. Bytes: 1.016 + 8 per element.
void q8_decode_accumulate(Q8View in, std::span<float> out);

}  // namespace tern
