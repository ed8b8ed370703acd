// q4h: a row of a warp's tile is a block, a rotation of 32 values lies in eight neighbouring lanes:
// butterflies of distance 1 and 2 inside a lane, 4, 8 and 16 between lanes. Operations and their order are
// those of kernels/q4h_scalar.cpp.
#pragma once

#include "kernels/block_formats.h"
#include "kernels/cuda/block_codes.cuh"
#include "kernels/cuda/q4h.h"
#include "runtime/base/philox.h"

namespace tern::cuda {

static_assert(kTileRow == Q4h::kShape.block);

constexpr simt::Shape shape(const Q4hEncode& args) {
  return tile_shape(args.n);
}
constexpr simt::Shape shape(const Q4hDecode& args) {
  return tile_shape(args.n);
}

/// The place of the codes, which fill up the last rotation.
TERN_DEVICE TilePlace coded_place(TilePlace place) {
  place.n = (place.n + kRotation - 1) / kRotation * kRotation;
  return place;
}

/// The sign bits of this lane's four values of the row, lowest first.
TERN_DEVICE uint32_t signs_of_lane(const ElementRandom& random, const TilePlace& place, uint32_t row) {
  const uint64_t block = (random.first + place.begin + row * kTileRow) | uint64_t{1} << 63;
  const PhiloxBlock words = Philox(kElementSeed, random.step).block(block);
  const uint32_t rotation = place.lane / 8;
  const uint32_t low = rotation % 2 == 0 ? words[0] : words[1];
  const uint32_t high = rotation % 2 == 0 ? words[2] : words[3];
  return (rotation < 2 ? low : high) >> (place.lane % 8 * 4) & 0xF;
}

TERN_DEVICE void flip(float (&y)[4], uint32_t signs) {
  for (uint32_t c = 0; c < 4; ++c) y[c] = (signs >> c & 1) != 0 ? -y[c] : y[c];
}

TERN_DEVICE void butterfly(float& a, float& b) {
  const float sum = a + b;
  b = a - b;
  a = sum;
}
TERN_DEVICE void transform(float (&y)[4]) {
  butterfly(y[0], y[1]);
  butterfly(y[2], y[3]);
  butterfly(y[0], y[2]);
  butterfly(y[1], y[3]);
  for (uint32_t distance = 1; distance < 8; distance *= 2) {
    const bool upper = (threadIdx.x & distance) != 0;
    for (uint32_t c = 0; c < 4; ++c) {
      const float theirs = __shfl_xor_sync(kAllLanes, y[c], distance);
      y[c] = upper ? theirs - y[c] : y[c] + theirs;
    }
  }
}

TERN_DEVICE uint32_t absmax_bits_of_row(const float (&y)[4]) {
  uint32_t bits = 0;
  for (uint32_t c = 0; c < 4; ++c) bits = std::max(bits, magnitude_bits(y[c]));
  return __reduce_max_sync(kAllLanes, bits);
}

/// What four codes (one per byte) decode to.
TERN_DEVICE void decode_four(uint32_t codes, float step, uint32_t signs, float (&y)[4]) {
  for (uint32_t c = 0; c < 4; ++c)
    y[c] = Q4h::value(Q4h::sign_extended(static_cast<uint8_t>(codes >> (8 * c))));
  transform(y);
  for (uint32_t c = 0; c < 4; ++c) y[c] = y[c] * step;
  flip(y, signs);
}

/// What a row's encoding draws.
struct RowOfQ4h {
  uint32_t signs;
  Offsets offsets;
};
/// Encodes a finite block; v becomes what the codes leave. Returns the codes of the lane.
TERN_DEVICE uint32_t q4h_codes(float (&v)[4], float absmax, const RowOfQ4h& row, uint16_t& scale) {
  const uint32_t signs = row.signs;
  const float lift = q4h_lift(absmax);
  float y[4];
  for (uint32_t c = 0; c < 4; ++c) y[c] = v[c] * lift;
  flip(y, signs);
  transform(y);
  const Scaling s = Q4h::scaling(std::bit_cast<float>(absmax_bits_of_row(y)) / (lift * kRotation));
  scale = s.wire;
  const float factor = s.lift / (lift * kRotation) * s.inverse;
  uint32_t codes = 0;
  for (uint32_t c = 0; c < 4; ++c)
    codes |= static_cast<uint32_t>(rounded<Q4h>(y[c] * factor, row.offsets, c)) << (8 * c);
  decode_four(codes, s.step, signs, y);
  while (absmax_bits_of_row(y) >= kInfinityBits) {  // a rounding beyond the largest float
    uint32_t halved = 0;
    for (uint32_t c = 0; c < 4; ++c) {
      const int code = static_cast<int8_t>(codes >> (8 * c)) / 2;
      halved |= static_cast<uint32_t>(static_cast<uint8_t>(code)) << (8 * c);
    }
    codes = halved;
    decode_four(codes, s.step, signs, y);
  }
  for (uint32_t c = 0; c < 4; ++c) v[c] = v[c] - y[c];
  return codes;
}

TERN_DEVICE void body(const Q4hEncode& args) {
  const TilePlace place = tile_place(args.n);
  if (place.begin >= args.n) return;  // the whole warp
  FloatTile v = load_input(args.in, place);
  if (args.residual != nullptr) add_tile(v, load_tile(Global<const float>(args.residual), place));
  ByteTile codes = {};
  uint32_t finite_rows = 0;
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    const uint32_t absmax_bits = absmax_bits_of_row(v.at[r]);
    const bool finite = absmax_bits < kInfinityBits;
    uint16_t scale = Q4h::kNan;
    if (finite) {
      const size_t in_run = place.element(r, 0);
      const RowOfQ4h row = {.signs = signs_of_lane(args.random, place, r),
                            .offsets = offsets_of(args.stochastic, args.random, in_run)};
      codes.row[r] = q4h_codes(v.at[r], std::bit_cast<float>(absmax_bits), row, scale);
      finite_rows |= 1U << r;
    }
    const size_t first = place.begin + r * kTileRow;
    if (place.lane != 0 || first >= args.n) continue;
    Global(reinterpret_cast<uint16_t*>(args.out.scales)).store(first / kTileRow, scale);
    if (!finite) Global(args.n_non_finite).atomic_add(0, 1);
  }
  store_bits<0, 4>(args.out.codes, coded_place(place), codes);
  if (args.residual != nullptr) store_tile(Global(args.residual), place, v, finite_rows);
}

TERN_DEVICE void body(const Q4hDecode& args) {
  const TilePlace place = tile_place(args.n);
  if (place.begin >= args.n) return;
  ByteTile codes = {};
  load_bits<0, 4>(args.in.codes, coded_place(place), codes);
  FloatTile v = {};
  if (args.how == Decode::kAdd) v = load_tile(Global<const float>(args.out), place);
  const Global scales(reinterpret_cast<const uint16_t*>(args.in.scales));
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    const size_t first = place.begin + r * kTileRow;
    const float step = first < args.n ? Q4h::step(scales.load(first / kTileRow)) : 0.0F;
    float x[4];
    decode_four(codes.row[r], step, signs_of_lane(args.random, place, r), x);
    for (uint32_t c = 0; c < 4; ++c) v.at[r][c] = args.how == Decode::kAdd ? v.at[r][c] + x[c] : x[c];
  }
  store_tile(Global(args.out), place, v);
}

}  // namespace tern::cuda
