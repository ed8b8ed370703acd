// Which elements of a block topk keeps.
//
// The k-th largest magnitude is searched by halving an interval of magnitudes (as integers, which order like
// floats), counting over the whole block each time. The interval starts between the largest magnitude and the
// least of the maxima of k equal parts, which k elements reach, so that real gradients take about ten rounds
// and constant ones none.
#pragma once

#include "kernels/block_scale.h"
#include "kernels/cuda/per_warp.cuh"
#include "kernels/cuda/tile.cuh"

namespace tern::cuda {

/// The magnitudes that are kept: all >= `above`, and of those equal to `tied` the first `n_tied`.
struct TopkChoice {
  uint32_t above;
  uint32_t tied;
  uint32_t n_tied;
};

/// Largest magnitude of the block, and a magnitude that at least k elements reach.
struct MagnitudeRange {
  uint32_t largest;
  uint32_t reached;
};
TERN_DEVICE MagnitudeRange magnitude_range(const FloatTile& v, uint32_t k) {
  TERN_SHARED PerWarp maxima, minima;
  uint32_t mine = 0;
  for (uint32_t r = 0; r < 4; ++r) {
    for (uint32_t c = 0; c < 4; ++c) mine = std::max(mine, magnitude_bits(v.at[r][c]));
  }
  const uint32_t threads_of_part = kTilesPerBlock * simt::kWarpSize / k;  // 2 to 16
  uint32_t part = mine;
  for (uint32_t distance = 1; distance < threads_of_part; distance *= 2)
    part = std::max(part, __shfl_xor_sync(kAllLanes, part, distance));
  const uint32_t inverted = __reduce_max_sync(kAllLanes, ~part);  // the largest ~x is that of the least x
  if (lane_idx() == 0) minima.store(warp_idx(), inverted);
  gather(maxima, __reduce_max_sync(kAllLanes, mine));
  return {.largest = largest(maxima), .reached = ~largest(minima)};
}

TERN_DEVICE uint32_t count_reaching(const FloatTile& v, uint32_t magnitude) {
  uint32_t count = 0;
  for (uint32_t r = 0; r < 4; ++r) {
    for (uint32_t c = 0; c < 4; ++c) count += magnitude_bits(v.at[r][c]) >= magnitude ? 1 : 0;
  }
  return __reduce_add_sync(kAllLanes, count);
}

TERN_DEVICE TopkChoice choose(const FloatTile& v, const MagnitudeRange& range, uint32_t n_entries) {
  TERN_SHARED PerWarp even, odd;      // by turns, so that one barrier per round is enough
  uint32_t low = range.reached;       // at least n_entries reach it
  uint32_t high = range.largest + 1;  // fewer do: `n_high`
  uint32_t n_high = 0;
  for (uint32_t round = 0; high - low > 1; ++round) {
    const uint32_t middle = low + (high - low) / 2;
    PerWarp& counts = round % 2 == 0 ? even : odd;
    gather(counts, count_reaching(v, middle));
    const uint32_t count = sum(counts, kTilesPerBlock);
    if (count > n_entries) {
      low = middle;
    } else {
      high = middle;
      n_high = count;
      if (count == n_entries) break;
    }
  }
  return {.above = high, .tied = low, .n_tied = n_entries - n_high};
}

}  // namespace tern::cuda
