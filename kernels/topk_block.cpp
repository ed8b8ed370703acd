#include "kernels/topk_block.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/block_scale.h"

namespace tern {
namespace {

template <class Byte, class Planes>
TopkBlockOf<Byte> block_of(const Planes& planes, int k, size_t begin, size_t n) {
  const size_t block_idx = begin / kTopkBlock;
  const size_t first_entry = block_idx * static_cast<size_t>(k);
  return {.indices = planes.indices + first_entry * 3 / 2,
          .values = planes.values + first_entry,
          .scale = planes.scales + block_idx * sizeof(Bfloat16),
          .n_entries = std::min({static_cast<size_t>(k), kTopkBlock, n - begin})};
}

void pack_indices(std::span<const uint16_t> indices, std::byte* to) {
  size_t j = 0;
  for (; j + 1 < indices.size(); j += 2, to += 3) {
    const uint32_t pair = indices[j] | static_cast<uint32_t>(indices[j + 1]) << 12;
    to[0] = static_cast<std::byte>(pair);
    to[1] = static_cast<std::byte>(pair >> 8);
    to[2] = static_cast<std::byte>(pair >> 16);
  }
  if (j < indices.size()) {
    to[0] = static_cast<std::byte>(indices[j]);
    to[1] = static_cast<std::byte>(indices[j] >> 8);
  }
}

/// Entry j starts at nibble 3 j of the plane.
size_t index_at(const std::byte* plane, size_t j) {
  const std::byte* at = plane + j * 3 / 2;
  const auto two_bytes = std::to_integer<size_t>(at[0]) | std::to_integer<size_t>(at[1]) << 8;
  return j % 2 == 0 ? two_bytes & 0xFFF : two_bytes >> 4;
}

}  // namespace

TopkBlock topk_block(TopkPlanes planes, int k, size_t begin, size_t n) {
  return block_of<std::byte>(planes, k, begin, n);
}
TopkBlockView topk_block(TopkView planes, int k, size_t begin, size_t n) {
  return block_of<const std::byte>(planes, k, begin, n);
}

void write_entries(std::span<const uint16_t> kept, float* v, const TopkBlock& to) {
  uint32_t absmax_bits = 0;
  for (const uint16_t i : kept) absmax_bits = std::max(absmax_bits, magnitude_bits(v[i]));
  const Bfloat16 scale = scale_of(std::bit_cast<float>(absmax_bits));
  std::memcpy(to.scale, &scale, sizeof(scale));
  pack_indices(kept, to.indices);
  const float step = to_float(scale);
  const float divisor = step > 0.0F ? step : 1.0F;
  for (size_t j = 0; j < kept.size(); ++j) {
    float& value = v[kept[j]];
    const int8_t code = nearest_code(value / divisor);
    to.values[j] = static_cast<std::byte>(code);
    value -= static_cast<float>(code) * step;
  }
}

void write_non_finite(const TopkBlock& to) {
  uint16_t indices[kTopkMax];
  std::iota(indices, indices + to.n_entries, uint16_t{0});
  pack_indices({indices, to.n_entries}, to.indices);
  std::memset(to.values, 0, to.n_entries);
  std::memcpy(to.scale, &kNanScale, sizeof(kNanScale));
}

void add_entries(const TopkBlockView& from, std::span<float> out) {
  Bfloat16 scale_bits;
  std::memcpy(&scale_bits, from.scale, sizeof(scale_bits));
  const float scale = to_float(scale_bits);
  if (std::isnan(scale)) {
    for (float& x : out) x += scale;
    return;
  }
  for (size_t j = 0; j < from.n_entries; ++j) {
    const size_t i = index_at(from.indices, j);
    if (i < out.size()) out[i] += static_cast<float>(static_cast<int8_t>(from.values[j])) * scale;
  }
}

}  // namespace tern
