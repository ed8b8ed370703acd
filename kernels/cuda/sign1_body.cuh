// sign1: four warps take a block of 2048 elements, a tile each. The format fixes the order in which
// magnitudes are summed, sixteen sums of every sixteenth element, so those go through shared memory and
// sixteen threads add. Operations and their order are those of kernels/sign1_scalar.cpp.
#pragma once

#include "kernels/block_scale.h"
#include "kernels/cuda/block_codes.cuh"
#include "kernels/cuda/sign1.h"

namespace tern::cuda {

inline constexpr uint32_t kSign1Block = kSign1Shape.block;
inline constexpr uint32_t kSign1Warps = kSign1Block / kTile;
inline constexpr uint32_t kSign1Granules = kSign1Block / kSignGranule;

constexpr simt::Shape sign1_shape(size_t n) {
  return {.grid = static_cast<uint32_t>((n + kSign1Block - 1) / kSign1Block),
          .block = kSign1Warps * simt::kWarpSize};
}
constexpr simt::Shape shape(const Sign1Encode& args) {
  return sign1_shape(args.n);
}
constexpr simt::Shape shape(const Sign1Decode& args) {
  return sign1_shape(args.n);
}

TERN_DEVICE TilePlace sign1_place(size_t n) {
  const size_t warp = size_t{blockIdx.x} * kSign1Warps + threadIdx.x / simt::kWarpSize;
  return {.begin = warp * kTile, .n = n, .lane = threadIdx.x % simt::kWarpSize};
}

/// The largest magnitude of the block; contains a barrier.
TERN_DEVICE uint32_t absmax_bits_of_block(const FloatTile& v) {
  TERN_SHARED Shared<uint32_t, kSign1Warps> maxima;
  uint32_t mine = 0;
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    for (uint32_t c = 0; c < 4; ++c) mine = std::max(mine, magnitude_bits(v.at[r][c]));
  }
  mine = __reduce_max_sync(kAllLanes, mine);
  if (threadIdx.x % simt::kWarpSize == 0) maxima.store(threadIdx.x / simt::kWarpSize, mine);
  __syncthreads();
  return __reduce_max_sync(kAllLanes, maxima.load(threadIdx.x % kSign1Warps));
}

/// Bit g: whether granule g of this warp's tile, half a row, has an element that is not zero.
TERN_DEVICE uint32_t used_granules(const FloatTile& v) {
  uint32_t used = 0;
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    uint32_t any = 0;
    for (uint32_t c = 0; c < 4; ++c) any |= magnitude_bits(v.at[r][c]);
    const uint32_t lanes = __ballot_sync(kAllLanes, any != 0 ? 1 : 0);
    used |= ((lanes & 0xFFFF) != 0 ? 1U : 0U) << (2 * r) | (lanes >> 16 != 0 ? 2U : 0U) << (2 * r);
  }
  return used;
}

/// Elements of the block's used granules, of the n_left that it has.
TERN_DEVICE uint32_t n_used_elements(uint32_t used, size_t n_left) {
  uint32_t n_used = 0;
  for (uint32_t g = 0; g < kSign1Granules; ++g) {
    if ((used >> g & 1) == 0 || g * kSignGranule >= n_left) continue;
    n_used += static_cast<uint32_t>(std::min(n_left - g * kSignGranule, size_t{kSignGranule}));
  }
  return n_used;
}

/// The scale of a finite block, from its magnitudes in shared memory; called by the first warp.
TERN_DEVICE uint16_t sign1_scale_bits(Shared<float, kSign1Block>& magnitudes, uint32_t used, float lift,
                                      size_t n_left) {
  const uint32_t lane = threadIdx.x;
  float sum = 0;
  if (lane < kSignSums) {
    for (uint32_t i = lane; i < n_left && i < kSign1Block; i += kSignSums) sum = sum + magnitudes.load(i);
  }
  for (uint32_t apart = kSignSums / 2; apart > 0; apart /= 2)
    sum = sum + __shfl_down_sync(kAllLanes, sum, apart);
  const uint32_t n_used = n_used_elements(used, n_left);
  if (n_used == 0) return 0;
  constexpr uint16_t kLargest = 0x7F7F;
  return std::min(to_bfloat16(sum / static_cast<float>(n_used) * (1 / lift)).bits, kLargest);
}

/// Writes the scale and the mask of a block; one thread.
TERN_DEVICE void write_sign1_head(const Sign1Encode& args, uint16_t scale, uint32_t used, size_t n_left) {
  Global(reinterpret_cast<uint16_t*>(args.out.scales)).store(blockIdx.x, scale);
  const Global<uint8_t> masks(reinterpret_cast<uint8_t*>(args.out.high));
  const auto n_granules = static_cast<uint32_t>(
      std::min<size_t>((n_left + kSignGranule - 1) / kSignGranule, size_t{kSign1Granules}));
  const uint32_t mask = n_granules < kSign1Granules ? used & ((1U << n_granules) - 1) : used;
  for (uint32_t byte = 0; byte < (n_granules + 7) / 8; ++byte)
    masks.store(size_t{blockIdx.x} * (kSign1Granules / 8) + byte, static_cast<uint8_t>(mask >> (8 * byte)));
}

TERN_DEVICE void body(const Sign1Encode& args) {
  TERN_SHARED Shared<float, kSign1Block> magnitudes;
  TERN_SHARED Shared<uint32_t, kSign1Warps> used_of_warp;
  TERN_SHARED Shared<uint16_t, 1> scale_of_block;
  const TilePlace place = sign1_place(args.n);
  const uint32_t warp = threadIdx.x / simt::kWarpSize;
  const size_t n_left = args.n - size_t{blockIdx.x} * kSign1Block;
  FloatTile v = load_input(args.in, place);
  if (args.residual != nullptr) add_tile(v, load_tile(Global<const float>(args.residual), place));
  const uint32_t absmax_bits = absmax_bits_of_block(v);
  const bool finite = absmax_bits < kInfinityBits;
  const auto absmax = std::bit_cast<float>(absmax_bits);
  const float lift = absmax < 0x1p-60F ? 0x1p64F : absmax < 0x1p100F ? 1.0F : 0x1p-12F;
  ByteTile negative = {};
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    for (uint32_t c = 0; c < 4; ++c) {
      const float x = v.at[r][c];
      magnitudes.store(warp * kTile + r * kTileRow + place.lane * 4 + c,
                       std::bit_cast<float>(magnitude_bits(x)) * lift);
      negative.row[r] |= (finite && x < 0 ? 1U : 0U) << (8 * c);
    }
  }
  const uint32_t used_here = finite ? used_granules(v) : 0xFF;
  if (place.lane == 0) used_of_warp.store(warp, used_here);
  __syncthreads();
  if (warp == 0) {
    uint32_t used = 0;
    for (uint32_t w = 0; w < kSign1Warps; ++w) used |= used_of_warp.load(w) << (8 * w);
    const uint16_t scale = finite ? sign1_scale_bits(magnitudes, used, lift, n_left) : kNanScale.bits;
    if (place.lane == 0) {
      scale_of_block.store(0, scale);
      write_sign1_head(args, scale, used, n_left);
      if (!finite) Global(args.n_non_finite).atomic_add(0, 1);
    }
  }
  store_bits<0, 1>(args.out.codes, place, negative);
  __syncthreads();
  if (!finite || args.residual == nullptr) return;
  const float step = to_float(Bfloat16{scale_of_block.load(0)});
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    const bool used = (used_here >> (2 * r + place.lane / 16) & 1) != 0;
    for (uint32_t c = 0; c < 4; ++c) {
      const float sent = !used ? 0.0F : v.at[r][c] < 0 ? -step : step;
      v.at[r][c] = v.at[r][c] - sent;
    }
  }
  store_tile(Global(args.residual), place, v);
}

TERN_DEVICE void body(const Sign1Decode& args) {
  const TilePlace place = sign1_place(args.n);
  if (place.begin >= args.n) return;
  ByteTile negative = {};
  load_bits<0, 1>(args.in.codes, place, negative);
  const float step =
      to_float(Bfloat16{Global(reinterpret_cast<const uint16_t*>(args.in.scales)).load(blockIdx.x)});
  // The tile's eight granules are one byte of the mask.
  const uint32_t used = Global(reinterpret_cast<const uint8_t*>(args.in.high)).load(place.begin / kTile);
  const bool add = args.how == Decode::kAdd;
  FloatTile v = {};
  if (add) v = load_tile(Global<const float>(args.out), place);
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    if ((used >> (2 * r + place.lane / 16) & 1) == 0) continue;  // 0, or what was there
    for (uint32_t c = 0; c < 4; ++c) {
      const float x = (negative.row[r] >> (8 * c) & 1) != 0 ? -step : step;
      v.at[r][c] = add ? v.at[r][c] + x : x;
    }
  }
  store_tile(Global(args.out), place, v);
}

}  // namespace tern::cuda
