// One block of the topk format: where its planes lie, and how entries are written and read (kernels/topk.h).
#pragma once

#include <cstdint>
#include <span>

#include "kernels/topk.h"

namespace tern {

template <class Byte>
struct TopkBlockOf {
  Byte* indices;
  Byte* values;
  Byte* scale;
  size_t n_entries;
};
using TopkBlock = TopkBlockOf<std::byte>;
using TopkBlockView = TopkBlockOf<const std::byte>;

/// The part of the planes of `n` elements that belongs to the block starting at element `begin`.
TopkBlock topk_block(TopkPlanes planes, int k, size_t begin, size_t n);
TopkBlockView topk_block(TopkView planes, int k, size_t begin, size_t n);

/// Writes the entries v[kept[j]] of a finite block, `kept` ascending, and leaves in v what they do not carry:
/// v[kept[j]] -= code * scale.
void write_entries(std::span<const uint16_t> kept, float* v, const TopkBlock& to);
/// Writes what marks a block as non-finite.
void write_non_finite(const TopkBlock& to);
/// out[index] += code * scale for every entry whose index lies in out; NaN everywhere when the scale is NaN.
void add_entries(const TopkBlockView& from, std::span<float> out);

}  // namespace tern
