// topk: 256 threads take a block of 4096 elements, sixteen each, and read it once. What is kept
// (topk_select.cuh) gets its place from a prefix sum in the order of the elements. Bytes are those of
// kernels/topk_scalar.cpp.
#pragma once

#include "kernels/block_scale.h"
#include "kernels/cuda/tile.cuh"
#include "kernels/cuda/topk.h"
#include "kernels/cuda/topk_select.cuh"

namespace tern::cuda {

static_assert(kTopkBlock == size_t{kTile} * kTilesPerBlock);

constexpr simt::Shape shape(const TopkEncode& args) {
  return tile_shape(args.n);
}
constexpr simt::Shape shape(const TopkDecode& args) {
  return tile_shape(args.n);
}

/// Four counts of at most 128, one per byte: the rows of a warp's tile.
TERN_DEVICE uint32_t sum_of_rows(uint32_t rows) {
  return (rows & 0xFF) + (rows >> 8 & 0xFF) + (rows >> 16 & 0xFF) + (rows >> 24);
}
/// Of each row, the sum over the lanes below.
TERN_DEVICE uint32_t rows_before(uint32_t rows) {
  uint32_t up_to = rows;
  for (uint32_t distance = 1; distance < simt::kWarpSize; distance *= 2) {
    const uint32_t below = __shfl_up_sync(kAllLanes, up_to, distance);
    if (lane_idx() >= distance) up_to += below;
  }
  return up_to - rows;
}

/// Where the planes of this block lie.
struct TopkBlockPlace {
  size_t first_entry;
  size_t first_index_byte;
  uint32_t n_entries;
};
TERN_DEVICE TopkBlockPlace topk_block_place(size_t n, int k) {
  const size_t block = blockIdx.x;
  const size_t left = n - block * kTopkBlock;
  return {.first_entry = block * static_cast<uint32_t>(k),
          .first_index_byte = block * static_cast<uint32_t>(k) * 3 / 2,
          .n_entries = static_cast<uint32_t>(std::min(left, static_cast<size_t>(k)))};
}

/// Writes the values of the kept elements, leaves in v what they do not carry, and lists their indices.
TERN_DEVICE void write_kept(FloatTile& v, const TopkChoice& choice, float step, const Global<int8_t>& values,
                            Shared<uint16_t, kTopkMax>& kept) {
  TERN_SHARED PerWarp totals;
  uint32_t above_rows = 0;
  uint32_t tied_rows = 0;
  for (uint32_t r = 0; r < 4; ++r) {
    for (uint32_t c = 0; c < 4; ++c) {
      const uint32_t magnitude = magnitude_bits(v.at[r][c]);
      above_rows += (magnitude >= choice.above ? 1U : 0U) << (8 * r);
      tied_rows += (magnitude == choice.tied ? 1U : 0U) << (8 * r);
    }
  }
  const uint32_t above_before = rows_before(above_rows);
  const uint32_t tied_before = rows_before(tied_rows);
  const uint32_t above_totals = __reduce_add_sync(kAllLanes, above_rows);
  const uint32_t tied_totals = __reduce_add_sync(kAllLanes, tied_rows);
  gather(totals, sum_of_rows(above_totals) | sum_of_rows(tied_totals) << 16);
  const uint32_t before = sum(totals, warp_idx());
  uint32_t n_above_rows = before & 0xFFFF;  // in the rows and warps before
  uint32_t n_tied_rows = before >> 16;
  const float divisor = step > 0.0F ? step : 1.0F;
  for (uint32_t r = 0; r < 4; ++r) {
    uint32_t n_above = n_above_rows + (above_before >> (8 * r) & 0xFF);
    uint32_t n_tied = n_tied_rows + (tied_before >> (8 * r) & 0xFF);
    for (uint32_t c = 0; c < 4; ++c) {
      const uint32_t magnitude = magnitude_bits(v.at[r][c]);
      const bool is_above = magnitude >= choice.above;
      const bool is_tied = magnitude == choice.tied;
      if (is_above || (is_tied && n_tied < choice.n_tied)) {
        const uint32_t entry = n_above + std::min(n_tied, choice.n_tied);
        const int8_t code = nearest_code(v.at[r][c] / divisor);
        values.store(entry, code);
        kept.store(entry, static_cast<uint16_t>(warp_idx() * kTile + r * kTileRow + lane_idx() * 4 + c));
        v.at[r][c] = v.at[r][c] - static_cast<float>(code) * step;
      }
      n_above += is_above ? 1 : 0;
      n_tied += is_tied ? 1 : 0;
    }
    n_above_rows += above_totals >> (8 * r) & 0xFF;
    n_tied_rows += tied_totals >> (8 * r) & 0xFF;
  }
}

/// Nibble `at` of the index plane: three per index, low ones first; 0 beyond the last.
TERN_DEVICE uint32_t index_nibble(Shared<uint16_t, kTopkMax>& kept, uint32_t at, uint32_t n_entries) {
  return at / 3 < n_entries ? kept.load(at / 3) >> (4 * (at % 3)) & 0xF : 0;
}

TERN_DEVICE void body(const TopkEncode& args) {
  TERN_SHARED Shared<uint16_t, kTopkMax> kept;
  const TilePlace place = tile_place(args.n);
  const TopkBlockPlace to = topk_block_place(args.n, args.k);
  FloatTile v = load_input(args.in, place);
  if (args.residual != nullptr) {
    const FloatTile residual = load_tile(Global<const float>(args.residual), place);
    for (uint32_t r = 0; r < 4; ++r) {
      for (uint32_t c = 0; c < 4; ++c) v.at[r][c] = v.at[r][c] + residual.at[r][c];
    }
  }
  const MagnitudeRange range = magnitude_range(v, static_cast<uint32_t>(args.k));
  const bool finite = range.largest < kInfinityBits;
  const Bfloat16 scale = finite ? scale_of(std::bit_cast<float>(range.largest)) : kNanScale;
  const Global<int8_t> values(reinterpret_cast<int8_t*>(args.out.values) + to.first_entry);
  if (finite) {
    const TopkChoice choice = choose(v, range, to.n_entries);
    write_kept(v, choice, to_float(scale), values, kept);
    if (args.residual != nullptr) store_tile(Global(args.residual), place, v);
  } else if (threadIdx.x < to.n_entries) {
    values.store(threadIdx.x, 0);
    kept.store(threadIdx.x, static_cast<uint16_t>(threadIdx.x));
  }
  if (threadIdx.x == 0) {
    Global(reinterpret_cast<Bfloat16*>(args.out.scales)).store(blockIdx.x, scale);
    if (!finite) Global(args.n_non_finite).atomic_add(0, 1);
  }
  __syncthreads();
  const uint32_t byte = threadIdx.x;
  if (byte >= (to.n_entries * 3 + 1) / 2) return;
  const uint32_t low = index_nibble(kept, 2 * byte, to.n_entries);
  const uint32_t high = index_nibble(kept, 2 * byte + 1, to.n_entries);
  Global(reinterpret_cast<uint8_t*>(args.out.indices))
      .store(to.first_index_byte + byte, static_cast<uint8_t>(low | high << 4));
}

TERN_DEVICE void body(const TopkDecode& args) {
  const TilePlace place = tile_place(args.n);
  const TopkBlockPlace from = topk_block_place(args.n, args.k);
  const Global<float> out(args.out);
  const float scale = to_float(Global(reinterpret_cast<const Bfloat16*>(args.in.scales)).load(blockIdx.x));
  const bool is_nan = scale != scale;
  if (is_nan || !args.accumulate) {
    FloatTile v = {};
    if (args.accumulate) v = load_tile(Global<const float>(args.out), place);
    for (uint32_t r = 0; r < 4; ++r) {
      for (uint32_t c = 0; c < 4; ++c) v.at[r][c] = is_nan ? v.at[r][c] + scale : v.at[r][c];
    }
    store_tile(out, place, v);
  }
  __syncthreads();
  const uint32_t entry = threadIdx.x;
  if (is_nan || entry >= from.n_entries) return;
  const Global<const uint8_t> indices(reinterpret_cast<const uint8_t*>(args.in.indices) +
                                      from.first_index_byte);
  const uint32_t two_bytes = indices.load(entry * 3 / 2) | indices.load(entry * 3 / 2 + 1) << 8;
  const uint32_t index = entry % 2 == 0 ? two_bytes & 0xFFF : two_bytes >> 4;
  const size_t i = blockIdx.x * kTopkBlock + index;
  if (i >= args.n) return;
  const int8_t code = Global(reinterpret_cast<const int8_t*>(args.in.values)).load(from.first_entry + entry);
  out.store(i, out.load(i) + static_cast<float>(code) * scale);
}

}  // namespace tern::cuda
