// The work of one warp in the kernels of block codecs: 512 elements, four q8 blocks, of which a thread holds
// sixteen. Every access of a whole, aligned tile moves 16 bytes per thread and 512 per warp, without gaps.
//
// Of floats, lane l holds elements 128 r + 4 l + c (row r, column c). Of bytes it holds the same elements as
// four 32-bit words, one per row; a 16-byte access wants four neighbouring words of one row, so the words of
// each four lanes are transposed on the way from and to memory.
#pragma once

#include "kernels/convert.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/input.h"
#include "kernels/simt/shape.h"

namespace tern::cuda {

inline constexpr uint32_t kTileRow = 128;
inline constexpr uint32_t kTile = 4 * kTileRow;
inline constexpr uint32_t kTilesPerBlock = 8;

/// One warp per tile.
constexpr simt::Shape tile_shape(size_t n) {
  constexpr size_t kPerBlock = size_t{kTile} * kTilesPerBlock;
  return {.grid = static_cast<uint32_t>((n + kPerBlock - 1) / kPerBlock),
          .block = kTilesPerBlock * simt::kWarpSize};
}

/// Where this thread's tile starts, and which part of it is the thread's.
struct TilePlace {
  size_t begin;
  size_t n;  ///< elements of the whole buffer
  uint32_t lane;

  TERN_DEVICE bool whole() const { return begin + kTile <= n; }
  /// Element (row, column) of this lane.
  TERN_DEVICE size_t element(uint32_t row, uint32_t column) const {
    return begin + row * kTileRow + lane * 4 + column;
  }
};
TERN_DEVICE TilePlace tile_place(size_t n) {
  const size_t warp = size_t{blockIdx.x} * kTilesPerBlock + threadIdx.x / simt::kWarpSize;
  return {.begin = warp * kTile, .n = n, .lane = threadIdx.x % simt::kWarpSize};
}

struct FloatTile {
  float at[4][4];  ///< [row][column]; 0 beyond the end
};
struct ByteTile {
  uint32_t row[4];  ///< four bytes each, the first one lowest; 0 beyond the end
};

// Whole tiles take a branch of their own: mixed with the guarded accesses, ptxas splits wide ones.

TERN_DEVICE FloatTile load_tile(const Global<const float>& in, const TilePlace& place) {
  FloatTile tile = {};
  if (place.whole() && in.aligned(place.begin)) {
    TERN_UNROLL
    for (uint32_t r = 0; r < 4; ++r) {
      const auto four = in.load_vector<4>(place.element(r, 0));
      for (uint32_t c = 0; c < 4; ++c) tile.at[r][c] = four.at[c];
    }
    return tile;
  }
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    for (uint32_t c = 0; c < 4; ++c) {
      if (place.element(r, c) < place.n) tile.at[r][c] = in.load(place.element(r, c));
    }
  }
  return tile;
}

/// Short floats, eight bytes per thread and row.
template <class T>
TERN_DEVICE FloatTile load_short_tile(const Global<const T>& in, const TilePlace& place) {
  FloatTile tile = {};
  if (place.whole() && in.aligned(place.begin)) {
    TERN_UNROLL
    for (uint32_t r = 0; r < 4; ++r) {
      const auto four = in.template load_vector<4>(place.element(r, 0));
      for (uint32_t c = 0; c < 4; ++c) tile.at[r][c] = to_float(four.at[c]);
    }
    return tile;
  }
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    for (uint32_t c = 0; c < 4; ++c) {
      if (place.element(r, c) < place.n) tile.at[r][c] = to_float(in.load(place.element(r, c)));
    }
  }
  return tile;
}

TERN_DEVICE FloatTile load_input(const Input& in, const TilePlace& place) {
  if (in.dtype == Dtype::kBfloat16)
    return load_short_tile(Global(static_cast<const Bfloat16*>(in.data)), place);
  if (in.dtype == Dtype::kFloat16)
    return load_short_tile(Global(static_cast<const Float16*>(in.data)), place);
  return load_tile(Global(static_cast<const float*>(in.data)), place);
}

TERN_DEVICE void add_tile(FloatTile& to, const FloatTile& what) {
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    for (uint32_t c = 0; c < 4; ++c) to.at[r][c] = to.at[r][c] + what.at[r][c];
  }
}

/// Stores the rows whose bit is set in `rows`.
TERN_DEVICE void store_tile(const Global<float>& out, const TilePlace& place, const FloatTile& tile,
                            uint32_t rows = 0xF) {
  if (place.whole() && out.aligned(place.begin)) {
    TERN_UNROLL
    for (uint32_t r = 0; r < 4; ++r) {
      const float* row = tile.at[r];
      if ((rows >> r & 1) != 0) out.store_vector<4>(place.element(r, 0), {{row[0], row[1], row[2], row[3]}});
    }
    return;
  }
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    for (uint32_t c = 0; c < 4; ++c) {
      if ((rows >> r & 1) != 0 && place.element(r, c) < place.n)
        out.store(place.element(r, c), tile.at[r][c]);
    }
  }
}

/// One of the two steps that transpose four words across four lanes: lanes `distance` apart trade word b of
/// the lower for word a of the upper.
TERN_DEVICE void trade(uint32_t& a, uint32_t& b, uint32_t distance) {
  const bool upper = (threadIdx.x & distance) != 0;
  const uint32_t theirs = __shfl_xor_sync(kAllLanes, upper ? a : b, distance);
  (upper ? a : b) = theirs;
}
/// Word j of lane 4q + i becomes word i of lane 4q + j.
TERN_DEVICE void transpose_words(ByteTile& tile) {
  trade(tile.row[0], tile.row[1], 1);
  trade(tile.row[2], tile.row[3], 1);
  trade(tile.row[0], tile.row[2], 2);
  trade(tile.row[1], tile.row[3], 2);
}
/// The first byte of the sixteen that this lane moves when the tile is transposed.
TERN_DEVICE size_t sixteen_bytes(const TilePlace& place) {
  return place.begin + (place.lane % 4) * kTileRow + place.lane / 4 * 16;
}

TERN_DEVICE ByteTile load_bytes(const std::byte* in, const TilePlace& place) {
  const Global<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(in));
  ByteTile tile = {};
  if (place.whole() && bytes.aligned(place.begin)) {
    const Global<const uint32_t> words(reinterpret_cast<const uint32_t*>(in));
    const auto four = words.load_vector<4>(sixteen_bytes(place) / 4);
    TERN_UNROLL
    for (uint32_t r = 0; r < 4; ++r) tile.row[r] = four.at[r];
    transpose_words(tile);
    return tile;
  }
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    for (uint32_t c = 0; c < 4; ++c) {
      if (place.element(r, c) < place.n)
        tile.row[r] |= static_cast<uint32_t>(bytes.load(place.element(r, c))) << (8 * c);
    }
  }
  return tile;
}

TERN_DEVICE void store_bytes(std::byte* out, const TilePlace& place, ByteTile tile) {
  const Global<uint8_t> bytes(reinterpret_cast<uint8_t*>(out));
  if (place.whole() && bytes.aligned(place.begin)) {
    transpose_words(tile);
    const Global<uint32_t> words(reinterpret_cast<uint32_t*>(out));
    words.store_vector<4>(sixteen_bytes(place) / 4, {{tile.row[0], tile.row[1], tile.row[2], tile.row[3]}});
    return;
  }
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    for (uint32_t c = 0; c < 4; ++c) {
      if (place.element(r, c) < place.n)
        bytes.store(place.element(r, c), static_cast<uint8_t>(tile.row[r] >> (8 * c)));
    }
  }
}

}  // namespace tern::cuda
