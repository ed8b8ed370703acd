// CUDA's words for a kernel body that the CPU interprets, under CUDA's names and with its meaning; each takes
// the place in the source as a last argument of its own, for messages.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>
#include <type_traits>

#include "kernels/simt/block.h"

#define TERN_DEVICE inline
#define TERN_SHARED static thread_local
#define TERN_UNROLL

// Names with two underscores are CUDA's. NOLINTBEGIN(bugprone-reserved-identifier)
namespace tern::cuda {

using simt::Block;
using simt::WarpCall;
using simt::Where;

/// threadIdx and its kin: one dimension, asked of the block that runs.
template <uint32_t (Block::*value)() const>
struct Dimension {
  struct X {
    operator uint32_t() const { return (Block::current().*value)(); }  // NOLINT(google-explicit-constructor)
  } x;
};
// Spelled as CUDA spells them. NOLINTBEGIN(readability-identifier-naming)
inline constexpr Dimension<& Block::thread_idx> threadIdx = {};
inline constexpr Dimension<& Block::block_idx> blockIdx = {};
inline constexpr Dimension<& Block::n_threads> blockDim = {};
inline constexpr Dimension<& Block::n_blocks> gridDim = {};
// NOLINTEND(readability-identifier-naming)

inline void __syncthreads(const Where& where = Where::current()) {
  Block::current().barrier(where);
}
inline void __syncwarp(uint32_t mask = UINT32_MAX, const Where& where = Where::current()) {
  const uint32_t lane = threadIdx.x % simt::kWarpSize;
  Block::current().warp({.name = "__syncwarp", .mask = mask, .source = lane, .orders_memory = true}, where);
}

template <class T>
T shuffle(std::string_view name, uint32_t mask, T value, uint32_t source, const Where& where) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t));
  WarpCall call = {.name = name, .mask = mask, .source = source};
  std::memcpy(&call.value, &value, sizeof(T));
  call.result = [](const WarpCall& mine, const WarpCall::Values& all) { return all[mine.source]; };
  const uint64_t result = Block::current().warp(call, where);
  std::memcpy(&value, &result, sizeof(T));
  return value;
}
template <class T>
T __shfl_sync(uint32_t mask, T value, uint32_t source, const Where& where = Where::current()) {
  return shuffle("__shfl_sync", mask, value, source % simt::kWarpSize, where);
}
template <class T>
T __shfl_xor_sync(uint32_t mask, T value, uint32_t lanes, const Where& where = Where::current()) {
  return shuffle("__shfl_xor_sync", mask, value, (threadIdx.x % simt::kWarpSize) ^ lanes, where);
}
/// Lanes without a source keep their own value.
template <class T>
T __shfl_down_sync(uint32_t mask, T value, uint32_t delta, const Where& where = Where::current()) {
  const uint32_t lane = threadIdx.x % simt::kWarpSize;
  return shuffle("__shfl_down_sync", mask, value, lane + delta < simt::kWarpSize ? lane + delta : lane,
                 where);
}
template <class T>
T __shfl_up_sync(uint32_t mask, T value, uint32_t delta, const Where& where = Where::current()) {
  const uint32_t lane = threadIdx.x % simt::kWarpSize;
  return shuffle("__shfl_up_sync", mask, value, lane >= delta ? lane - delta : lane, where);
}

inline uint32_t __ballot_sync(uint32_t mask, int vote, const Where& where = Where::current()) {
  WarpCall call = {.name = "a vote", .mask = mask, .value = vote != 0 ? 1U : 0U};
  call.source = threadIdx.x % simt::kWarpSize;
  call.result = [](const WarpCall&, const WarpCall::Values& all) {
    uint64_t votes = 0;
    for (uint32_t lane = 0; lane < simt::kWarpSize; ++lane) votes |= all[lane] << lane;
    return votes;
  };
  return static_cast<uint32_t>(Block::current().warp(call, where));
}
inline int __any_sync(uint32_t mask, int vote, const Where& where = Where::current()) {
  return __ballot_sync(mask, vote, where) != 0 ? 1 : 0;
}
inline int __all_sync(uint32_t mask, int vote, const Where& where = Where::current()) {
  return __ballot_sync(mask, vote, where) == mask ? 1 : 0;
}

struct Largest {
  uint64_t operator()(uint64_t a, uint64_t b) const { return std::max(a, b); }
};
/// Folds the values of the lanes in the mask; 0 stands for the others, as it does nothing in these folds.
template <class Fold>
uint32_t warp_fold(std::string_view name, uint32_t mask, uint32_t value, const Where& where) {
  WarpCall call = {.name = name, .mask = mask, .value = value, .source = threadIdx.x % simt::kWarpSize};
  call.result = [](const WarpCall&, const WarpCall::Values& all) {
    return std::accumulate(all.begin(), all.end(), uint64_t{0}, Fold());
  };
  return static_cast<uint32_t>(Block::current().warp(call, where));
}
inline uint32_t __reduce_add_sync(uint32_t mask, uint32_t value, const Where& where = Where::current()) {
  return warp_fold<std::plus<uint64_t>>("__reduce_add_sync", mask, value, where);
}
inline uint32_t __reduce_max_sync(uint32_t mask, uint32_t value, const Where& where = Where::current()) {
  return warp_fold<Largest>("__reduce_max_sync", mask, value, where);
}
inline uint32_t __reduce_or_sync(uint32_t mask, uint32_t value, const Where& where = Where::current()) {
  return warp_fold<std::bit_or<uint64_t>>("__reduce_or_sync", mask, value, where);
}

inline int __popc(uint32_t x) {
  return std::popcount(x);
}

}  // namespace tern::cuda
// NOLINTEND(bugprone-reserved-identifier)
