// Reductions over a block: one number of each warp in shared memory.
#pragma once

#include "kernels/cuda/tile.cuh"

namespace tern::cuda {

/// One number of each warp.
using PerWarp = Shared<uint32_t, kTilesPerBlock>;

TERN_DEVICE uint32_t warp_idx() {
  return threadIdx.x / simt::kWarpSize;
}
TERN_DEVICE uint32_t lane_idx() {
  return threadIdx.x % simt::kWarpSize;
}
/// Hands in `mine`, equal in all lanes of the warp; contains a barrier.
TERN_DEVICE void gather(PerWarp& all, uint32_t mine) {
  if (lane_idx() == 0) all.store(warp_idx(), mine);
  __syncthreads();
}
TERN_DEVICE uint32_t largest(PerWarp& all) {
  return __reduce_max_sync(kAllLanes, all.load(lane_idx() % kTilesPerBlock));
}
/// Sum of the first `n_warps` numbers.
TERN_DEVICE uint32_t sum(PerWarp& all, uint32_t n_warps) {
  return __reduce_add_sync(kAllLanes, lane_idx() < n_warps ? all.load(lane_idx()) : 0);
}

}  // namespace tern::cuda
