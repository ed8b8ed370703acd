// bf16 as a wire format: every element rounded to the nearest bf16, ties to even, little endian, at any
// address.
#pragma once

#include <cstddef>
#include <span>

namespace tern {

/// out: 2 * in.size() bytes. Returns whether a result is inf or NaN (large finite elements round to inf).
/// Bytes: 4 + 2 per element. Same bytes on every instruction set.
bool bf16_encode(std::span<const float> in, std::byte* out);
/// out[i] = element i (exact). Bytes: 2 + 4 per element.
void bf16_decode(const std::byte* in, std::span<float> out);
/// out[i] += element i, rounded once. Bytes: 2 + 8 per element.
void bf16_decode_accumulate(const std::byte* in, std::span<float> out);

}  // namespace tern
