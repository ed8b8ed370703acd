// The code planes of a warp's tile, whatever their width. A thread's four neighbouring codes are four bytes
// of a word, or two words when codes have two bytes; narrower planes are packed from and to them.
#pragma once

#include "kernels/block_codec.h"
#include "kernels/block_scale.h"
#include "kernels/cuda/tile.cuh"
#include "runtime/base/philox.h"

namespace tern::cuda {

/// [row]: four codes, the first one lowest, in the lower half when they are bytes; 0 beyond the end.
struct CodeTile {
  uint64_t row[4];
};

/// Bits [shift, shift + n_bits) of four bytes, next to each other.
template <int shift, int n_bits>
TERN_DEVICE uint32_t pack_four(uint32_t bytes) {
  constexpr uint32_t kMask = (1U << n_bits) - 1;
  uint32_t packed = 0;
  for (int c = 0; c < 4; ++c) packed |= (bytes >> (8 * c + shift) & kMask) << (n_bits * c);
  return packed;
}
template <int shift, int n_bits>
TERN_DEVICE uint32_t unpack_four(uint32_t packed) {
  constexpr uint32_t kMask = (1U << n_bits) - 1;
  uint32_t bytes = 0;
  for (int c = 0; c < 4; ++c) bytes |= (packed >> (n_bits * c) & kMask) << (8 * c + shift);
  return bytes;
}

/// The plane of bits [shift, shift + n_bits) of the tile's bytes, n_bits of 1, 2 or 4. A warp's row is 16 to
/// 64 neighbouring bytes, stored at once.
template <int shift, int n_bits>
TERN_DEVICE void store_bits(std::byte* out, const TilePlace& place, const ByteTile& tile) {
  const Global<uint8_t> bytes(reinterpret_cast<uint8_t*>(out));
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    uint32_t packed = pack_four<shift, n_bits>(tile.row[r]);
    const size_t first = place.element(r, 0);
    if constexpr (n_bits == 1) {  // two lanes share a byte
      packed |= __shfl_xor_sync(kAllLanes, packed, 1) << 4;
      if (place.lane % 2 == 0 && first < place.n) bytes.store(first / 8, static_cast<uint8_t>(packed));
    } else if constexpr (n_bits == 2) {
      if (first < place.n) bytes.store(first / 4, static_cast<uint8_t>(packed));
    } else {
      if (place.whole() && bytes.aligned(0)) {
        Global(reinterpret_cast<uint16_t*>(out)).store(first / 4, static_cast<uint16_t>(packed));
        continue;
      }
      if (first < place.n) bytes.store(first / 2, static_cast<uint8_t>(packed));
      if (first + 2 < place.n) bytes.store(first / 2 + 1, static_cast<uint8_t>(packed >> 8));
    }
  }
}

/// Adds the bits of a plane to the tile's bytes.
template <int shift, int n_bits>
TERN_DEVICE void load_bits(const std::byte* in, const TilePlace& place, ByteTile& tile) {
  const Global<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(in));
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    uint32_t packed = 0;
    const size_t first = place.element(r, 0);
    if constexpr (n_bits == 1) {
      if (first < place.n)
        packed = static_cast<uint32_t>(bytes.load(first / 8)) >> (place.lane % 2 * 4) & 0xF;
    } else if constexpr (n_bits == 2) {
      if (first < place.n) packed = bytes.load(first / 4);
    } else {
      if (place.whole() && bytes.aligned(0)) {
        packed = Global(reinterpret_cast<const uint16_t*>(in)).load(first / 4);
      } else {
        if (first < place.n) packed = bytes.load(first / 2);
        if (first + 2 < place.n) packed |= static_cast<uint32_t>(bytes.load(first / 2 + 1)) << 8;
      }
    }
    tile.row[r] |= unpack_four<shift, n_bits>(packed);
  }
}

/// What decides how a lane's four elements, the first one number `element` of the run, are rounded.
struct Offsets {
  bool stochastic = false;
  float u[4] = {};
};
TERN_DEVICE Offsets offsets_of(bool stochastic, const ElementRandom& random, size_t element) {
  Offsets offsets = {.stochastic = stochastic};
  if (!stochastic) return offsets;
  const Philox numbers(kElementSeed, random.step);
  const uint64_t first = random.first + element;
  const uint32_t at = first % 4;  // the four numbers lie in one block of Philox, or in two
  const PhiloxBlock low = numbers.block(first / 4);
  const PhiloxBlock high = at == 0 ? low : numbers.block(first / 4 + 1);
  const uint32_t words[8] = {low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]};
  for (int c = 0; c < 4; ++c) {
    const uint32_t even = at == 0 ? words[c] : words[c + 2];
    const uint32_t odd = at == 1 ? words[c + 1] : words[c + 3];
    offsets.u[c] = stochastic_offset(at % 2 == 0 ? even : odd);
  }
  return offsets;
}
/// The integer code of element c of the four.
template <class Format>
TERN_DEVICE typename Format::Code rounded(float x, const Offsets& offsets, uint32_t c) {
  return offsets.stochastic ? Format::code(x, offsets.u[c]) : Format::code(x);
}

TERN_DEVICE ByteTile bytes_of(const CodeTile& codes) {
  ByteTile tile;
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) tile.row[r] = static_cast<uint32_t>(codes.row[r]);
  return tile;
}

/// Codes of two bytes, eight bytes per thread and 256 per warp at once.
TERN_DEVICE void store_halves(std::byte* out, const TilePlace& place, const CodeTile& codes) {
  const Global<uint16_t> halves(reinterpret_cast<uint16_t*>(out));
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    Vec<uint16_t, 4> four;
    for (uint32_t c = 0; c < 4; ++c) four.at[c] = static_cast<uint16_t>(codes.row[r] >> (16 * c));
    if (place.whole() && halves.aligned(0)) {
      halves.store_vector(place.element(r, 0), four);
      continue;
    }
    for (uint32_t c = 0; c < 4; ++c) {
      if (place.element(r, c) < place.n) halves.store(place.element(r, c), four.at[c]);
    }
  }
}
TERN_DEVICE CodeTile load_halves(const std::byte* in, const TilePlace& place) {
  const Global<const uint16_t> halves(reinterpret_cast<const uint16_t*>(in));
  CodeTile codes = {};
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    Vec<uint16_t, 4> four = {};
    if (place.whole() && halves.aligned(0)) {
      four = halves.load_vector<4>(place.element(r, 0));
    } else {
      for (uint32_t c = 0; c < 4; ++c) {
        if (place.element(r, c) < place.n) four.at[c] = halves.load(place.element(r, c));
      }
    }
    for (uint32_t c = 0; c < 4; ++c) codes.row[r] |= static_cast<uint64_t>(four.at[c]) << (16 * c);
  }
  return codes;
}

template <class Format>
TERN_DEVICE void store_codes(const BlockPlanes& out, const TilePlace& place, const CodeTile& codes) {
  constexpr BlockShape kShape = Format::kShape;
  if constexpr (kShape.code_bits == 16) {
    store_halves(out.codes, place, codes);
  } else if constexpr (kShape.code_bits == 8) {
    store_bytes(out.codes, place, bytes_of(codes));
  } else {
    store_bits<0, 4>(out.codes, place, bytes_of(codes));
    if constexpr (kShape.high_bits > 0) store_bits<4, kShape.high_bits>(out.high, place, bytes_of(codes));
  }
}

template <class Format>
TERN_DEVICE CodeTile load_codes(const BlockView& in, const TilePlace& place) {
  constexpr BlockShape kShape = Format::kShape;
  if constexpr (kShape.code_bits == 16) {
    return load_halves(in.codes, place);
  } else {
    ByteTile bytes = {};
    if constexpr (kShape.code_bits == 8) {
      bytes = load_bytes(in.codes, place);
    } else {
      load_bits<0, 4>(in.codes, place, bytes);
      if constexpr (kShape.high_bits > 0) load_bits<4, kShape.high_bits>(in.high, place, bytes);
    }
    return {{bytes.row[0], bytes.row[1], bytes.row[2], bytes.row[3]}};
  }
}

}  // namespace tern::cuda
