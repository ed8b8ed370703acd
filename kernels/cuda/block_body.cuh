// Block formats: a warp takes a tile of 512 elements. A lane holds four neighbouring elements of a row, so a
// block of 128 is one warp reduction and a block of 32 one over eight lanes. Arithmetic and rounding are
// those of kernels/block_scalar.h, operation by operation.
#pragma once

#include "kernels/block_formats.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/block_codes.cuh"

namespace tern::cuda {

template <class Format>
constexpr simt::Shape shape(const BlockEncode<Format>& args) {
  return tile_shape(args.n);
}
template <class Format>
constexpr simt::Shape shape(const BlockDecode<Format>& args) {
  return tile_shape(args.n);
}

/// Lanes that hold a block.
template <class Format>
inline constexpr uint32_t kLanesOfBlock = Format::kShape.block / 4;

/// The largest x of the lanes that hold this lane's block.
template <class Format>
TERN_DEVICE uint32_t largest_of_block(uint32_t x) {
  if constexpr (kLanesOfBlock<Format> == simt::kWarpSize) {
    return __reduce_max_sync(kAllLanes, x);
  } else {
    for (uint32_t distance = 1; distance < kLanesOfBlock<Format>; distance *= 2)
      x = std::max(x, __shfl_xor_sync(kAllLanes, x, distance));
    return x;
  }
}

template <class Format>
TERN_DEVICE void store_scale(std::byte* scales, size_t block, uint16_t wire) {
  if constexpr (Format::kShape.scale_bytes == 2)
    Global(reinterpret_cast<uint16_t*>(scales)).store(block, wire);
  else
    Global(reinterpret_cast<uint8_t*>(scales)).store(block, static_cast<uint8_t>(wire));
}
template <class Format>
TERN_DEVICE uint16_t load_scale(const std::byte* scales, size_t block) {
  if constexpr (Format::kShape.scale_bytes == 2)
    return Global(reinterpret_cast<const uint16_t*>(scales)).load(block);
  else
    return Global(reinterpret_cast<const uint8_t*>(scales)).load(block);
}

/// The codes of one lane's four elements of a finite block; v becomes what they leave. Adds what was clamped.
template <class Format>
TERN_DEVICE uint64_t codes_of(float (&v)[4], uint32_t absmax_bits, const Offsets& offsets,
                              uint32_t& n_saturated) {
  using Code = typename Format::Code;
  const Scaling s = Format::scaling(std::bit_cast<float>(absmax_bits));
  uint64_t codes = 0;
  for (uint32_t c = 0; c < 4; ++c) {
    const float x = v[c] * s.lift * s.inverse;
    Code code = 0;
    if constexpr (Format::kRounds) {
      code = rounded<Format>(x, offsets, c);
    } else {
      code = Format::code(x);
      n_saturated += Format::saturates(x) ? 1 : 0;
    }
    const float decoded = Format::value(code) * s.step;
    if (absmax_bits >= kHugeBits && magnitude_bits(decoded) == kInfinityBits)
      code = Format::nearer_to_zero(code);
    v[c] = v[c] - Format::value(code) * s.step;
    codes |= static_cast<uint64_t>(code) << (8 * sizeof(Code) * c);
  }
  return codes;
}

template <class Format>
TERN_DEVICE void body(const BlockEncode<Format>& args) {
  constexpr size_t kBlock = Format::kShape.block;
  const TilePlace place = tile_place(args.n);
  if (place.begin >= args.n) return;  // the whole warp
  FloatTile v = load_input(args.in, place);
  if (args.residual != nullptr) add_tile(v, load_tile(Global<const float>(args.residual), place));
  CodeTile codes = {};
  uint32_t finite_rows = 0;
  uint32_t n_saturated = 0;
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    uint32_t absmax_bits = 0;
    for (uint32_t c = 0; c < 4; ++c) absmax_bits = std::max(absmax_bits, magnitude_bits(v.at[r][c]));
    absmax_bits = largest_of_block<Format>(absmax_bits);
    const bool finite = absmax_bits < kInfinityBits;
    const size_t first = place.element(r, 0);
    if (finite) {
      const Offsets offsets = offsets_of(Format::kRounds && args.stochastic, args.random, first);
      codes.row[r] = codes_of<Format>(v.at[r], absmax_bits, offsets, n_saturated);
      finite_rows |= 1U << r;
    }
    if (first % kBlock != 0 || first >= args.n) continue;
    const auto absmax = std::bit_cast<float>(absmax_bits);
    store_scale<Format>(args.out.scales, first / kBlock,
                        finite ? Format::scaling(absmax).wire : Format::kNan);
    if (!finite) Global(args.n_non_finite).atomic_add(0, 1);
  }
  store_codes<Format>(args.out, place, codes);
  if (args.residual != nullptr) store_tile(Global(args.residual), place, v, finite_rows);
  if constexpr (!Format::kRounds) {
    n_saturated = __reduce_add_sync(kAllLanes, n_saturated);
    if (n_saturated > 0 && place.lane == 0) Global(args.n_saturated).atomic_add(0, n_saturated);
  }
}

template <class Format>
TERN_DEVICE void body(const BlockDecode<Format>& args) {
  using Code = typename Format::Code;
  const TilePlace place = tile_place(args.n);
  if (place.begin >= args.n) return;
  const CodeTile codes = load_codes<Format>(args.in, place);
  FloatTile v = {};
  if (args.how == Decode::kAdd) v = load_tile(Global<const float>(args.out), place);
  TERN_UNROLL
  for (uint32_t r = 0; r < 4; ++r) {
    const size_t first = place.element(r, 0);
    const float step = first < args.n
                           ? Format::step(load_scale<Format>(args.in.scales, first / Format::kShape.block))
                           : 0.0F;
    for (uint32_t c = 0; c < 4; ++c) {
      auto code = static_cast<Code>(codes.row[r] >> (8 * sizeof(Code) * c));
      if constexpr (Format::kPacked) code = Format::sign_extended(code);
      const float x = Format::value(code) * step;
      v.at[r][c] = args.how == Decode::kAdd ? v.at[r][c] + x : x;
    }
  }
  store_tile(Global(args.out), place, v);
}

}  // namespace tern::cuda
