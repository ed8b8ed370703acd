// q8: a warp takes four blocks; a block's 128 elements are one float4 per lane, so its absmax is one warp
// reduction. Arithmetic and rounding are those of kernels/block_scalar.h, operation by operation.
#pragma once

#include "kernels/block_scale.h"
#include "kernels/cuda/q8.h"
#include "kernels/cuda/tile.cuh"

namespace tern::cuda {

static_assert(kTileRow == Q8::kShape.block);

constexpr simt::Shape shape(const Q8Encode& args) {
  return tile_shape(args.n);
}
constexpr simt::Shape shape(const Q8Decode& args) {
  return tile_shape(args.n);
}

/// The codes of this lane's four elements of a finite block; v becomes what they leave.
TERN_DEVICE uint32_t q8_codes(float (&v)[4], Bfloat16 scale, float absmax) {
  constexpr float kTiny = 0x1p-100F;  // below it 1 / scale would overflow
  const float lift = absmax < kTiny ? 0x1p64F : 1.0F;
  const float inverse = absmax == 0.0F ? 0.0F : 1.0F / (to_float(scale) * lift);
  uint32_t codes = 0;
  for (uint32_t c = 0; c < 4; ++c) {
    const int8_t code = nearest_code(v[c] * lift * inverse);
    codes |= static_cast<uint32_t>(static_cast<uint8_t>(code)) << (8 * c);
    v[c] = v[c] - static_cast<float>(code) * to_float(scale);
  }
  return codes;
}

TERN_DEVICE void body(const Q8Encode& args) {
  const TilePlace place = tile_place(args.n);
  if (place.begin >= args.n) return;  // the whole warp
  FloatTile v = load_tile(Global<const float>(args.in), place);
  if (args.residual != nullptr) {
    const FloatTile residual = load_tile(Global<const float>(args.residual), place);
    for (uint32_t r = 0; r < 4; ++r) {
      for (uint32_t c = 0; c < 4; ++c) v.at[r][c] = v.at[r][c] + residual.at[r][c];
    }
  }
  ByteTile codes = {};
  uint32_t finite_rows = 0;
  const Global<Bfloat16> scales(reinterpret_cast<Bfloat16*>(args.out.scales));
  for (uint32_t r = 0; r < 4; ++r) {
    uint32_t absmax_bits = 0;
    for (uint32_t c = 0; c < 4; ++c) absmax_bits = std::max(absmax_bits, magnitude_bits(v.at[r][c]));
    absmax_bits = __reduce_max_sync(kAllLanes, absmax_bits);
    const bool finite = absmax_bits < kInfinityBits;
    const auto absmax = std::bit_cast<float>(absmax_bits);
    const Bfloat16 scale = finite ? scale_of(absmax) : kNanScale;
    if (finite) {
      codes.row[r] = q8_codes(v.at[r], scale, absmax);
      finite_rows |= 1U << r;
    }
    const size_t first = place.begin + r * kTileRow;
    if (place.lane != 0 || first >= args.n) continue;
    scales.store(first / kTileRow, scale);
    if (!finite) Global(args.n_non_finite).atomic_add(0, 1);
  }
  store_bytes(args.out.codes, place, codes);
  if (args.residual != nullptr) store_tile(Global(args.residual), place, v, finite_rows);
}

TERN_DEVICE void body(const Q8Decode& args) {
  const TilePlace place = tile_place(args.n);
  if (place.begin >= args.n) return;
  const ByteTile codes = load_bytes(args.in.codes, place);
  const Global<const Bfloat16> scales(reinterpret_cast<const Bfloat16*>(args.in.scales));
  FloatTile v = {};
  if (args.accumulate) v = load_tile(Global<const float>(args.out), place);
  for (uint32_t r = 0; r < 4; ++r) {
    const size_t first = place.begin + r * kTileRow;
    const float scale = first < args.n ? to_float(scales.load(first / kTileRow)) : 0.0F;
    for (uint32_t c = 0; c < 4; ++c) {
      const float value = static_cast<float>(static_cast<int8_t>(codes.row[r] >> (8 * c))) * scale;
      v.at[r][c] = args.accumulate ? v.at[r][c] + value : value;
    }
  }
  store_tile(Global(args.out), place, v);
}

}  // namespace tern::cuda
