// Block formats on vectors: each block is read once, with its residual, into the first-level cache, where its
// scale and then its codes are made. Tiles of 128 elements, so that codes shorter than a byte are packed by
// whole vectors. Included once per instruction set.
#if defined(TERN_KERNELS_CPU_BLOCK_CODEC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TERN_KERNELS_CPU_BLOCK_CODEC_INL_H_
#undef TERN_KERNELS_CPU_BLOCK_CODEC_INL_H_
#else
#define TERN_KERNELS_CPU_BLOCK_CODEC_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/block_scalar.h"
#include "kernels/cpu/element_random-inl.h"
#include "kernels/cpu/prefetch.h"
#include "kernels/cpu/short_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR  // which has no vectors to pack from

/// Elements [i, i + lanes) of v = in, or of in + residual, which is copied to `sum`.
template <bool kResidual>
HWY_INLINE VF load_value(const float* in, const float* residual, float* HWY_RESTRICT sum, size_t i) {
  const F f;
  prefetch_ahead(in + i);
  auto v = hn::LoadU(f, in + i);
  if constexpr (kResidual) {
    prefetch_ahead(residual + i);
    v = hn::Add(v, hn::LoadU(f, residual + i));
    hn::Store(v, f, sum + i);
  }
  return v;
}

/// Codes of one vector of values that were divided by their step: stored, and returned as numbers again.
template <class Format>
HWY_INLINE VF store_codes(VF x, const float* offsets, typename Format::Code* to) {
  const F f;
  if constexpr (Format::kRounds) {
    const hn::Rebind<uint8_t, F> u8;
    const auto shift = hn::Set(f, kRoundingShift);
    if (offsets != nullptr) {
      const auto most = hn::Set(f, Format::kMost);
      x = hn::Min(hn::Max(hn::Floor(hn::Add(x, hn::Load(f, offsets))), hn::Neg(most)), most);
    }
    const auto shifted = hn::Add(x, shift);  // its low byte is the code: see nearest_code()
    hn::StoreU(hn::TruncateTo(u8, hn::BitCast(U(), shifted)), u8, to);
    return hn::Sub(shifted, shift);
  } else {
    auto* elements = reinterpret_cast<typename Format::Element*>(to);
    store_elements(x, f, elements);
    return load_elements(f, elements);
  }
}

template <class Format>
HWY_INLINE VF load_codes(const typename Format::Code* from) {
  const F f;
  if constexpr (Format::kRounds) {
    const hn::Rebind<int8_t, F> i8;
    return hn::ConvertTo(f, hn::PromoteTo(I(), hn::LoadU(i8, reinterpret_cast<const int8_t*>(from))));
  } else {
    return load_elements(f, reinterpret_cast<const typename Format::Element*>(from));
  }
}

/// A tile of a run in the first-level cache.
template <class Format>
struct LoadedTile {
  HWY_ALIGN float sum[kTile];                               ///< v, where it is a sum
  uint32_t absmax_bits[kTile / Format::kShape.block] = {};  ///< of v
};

template <class Format, bool kResidual>
HWY_INLINE void load_tile(const BlockInput& run, size_t begin, LoadedTile<Format>& loaded) {
  const F f;
  const I i32;
  constexpr size_t kBlock = Format::kShape.block;
  const float* const in = run.in.data() + begin;
  const float* const residual = kResidual ? run.residual + begin : nullptr;
  for (size_t first = 0; first < kTile; first += kBlock) {
    auto absmax = hn::Zero(i32);
    for (size_t i = first; i < first + kBlock; i += hn::Lanes(f)) {
      const auto v = load_value<kResidual>(in, residual, loaded.sum, i);
      absmax = hn::Max(absmax, hn::BitCast(i32, hn::Abs(v)));  // as integers, so that NaN is the largest
    }
    loaded.absmax_bits[first / kBlock] = static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(i32, absmax)));
  }
}

/// A loaded block of a run, and where its scale and codes go. The run stays where it is: describing each
/// block of it in memory would cost more than scaling it.
template <class Format>
struct LoadedBlock {
  size_t begin;  ///< in the run
  const float* sum;
  uint32_t absmax_bits;
  std::byte* scale;
  typename Format::Code* codes;
};

/// offsets (null: to the nearest) are those of the block.
template <class Format, bool kResidual>
HWY_INLINE BlockCounts encode_block(const BlockInput& run, const LoadedBlock<Format>& block,
                                    const float* offsets) {
  const F f;
  constexpr size_t kBlock = Format::kShape.block;
  const auto one_by_one = [&] {
    return scalar::quantise<Format>(scalar::part_of(run, block.begin, kBlock), block.codes, block.scale);
  };
  if (block.absmax_bits >= kHugeBits) [[unlikely]]  // or not finite
    return one_by_one();
  const Scaling s = Format::scaling(std::bit_cast<float>(block.absmax_bits));
  if (s.lift != 1.0F) [[unlikely]]
    return one_by_one();
  std::memcpy(block.scale, &s.wire, Format::kShape.scale_bytes);
  const auto inverse = hn::Set(f, s.inverse);
  const auto step = hn::Set(f, s.step);
  const float* const from = kResidual ? block.sum : run.in.data() + block.begin;
  BlockCounts counts;
  for (size_t i = 0; i < kBlock; i += hn::Lanes(f)) {
    const auto v = hn::LoadU(f, from + i);
    const auto x = hn::Mul(v, inverse);
    if constexpr (!Format::kRounds) {
      if constexpr (Format::kLimit < HUGE_VALF)
        counts.n_saturated += hn::CountTrue(f, hn::Gt(hn::Abs(x), hn::Set(f, Format::kLimit)));
    }
    const auto decoded = store_codes<Format>(x, offsets != nullptr ? offsets + i : nullptr, block.codes + i);
    if constexpr (kResidual)
      hn::StoreU(hn::Sub(v, hn::Mul(decoded, step)), f, run.residual + block.begin + i);
  }
  return counts;
}

/// Two codes per byte.
HWY_INLINE void pack_nibbles(const uint8_t* codes, std::byte* out) {
  const hn::CappedTag<uint16_t, kTile / 2> u16;
  const hn::Rebind<uint8_t, decltype(u16)> u8;
  for (size_t i = 0; i < kTile; i += 2 * hn::Lanes(u16)) {
    const auto pairs = hn::BitCast(u16, hn::LoadU(hn::Repartition<uint8_t, decltype(u16)>(), codes + i));
    const auto low = hn::And(pairs, hn::Set(u16, 0x0F));
    const auto high = hn::And(hn::ShiftRight<4>(pairs), hn::Set(u16, 0xF0));
    hn::StoreU(hn::TruncateTo(u8, hn::Or(low, high)), u8, reinterpret_cast<uint8_t*>(out + i / 2));
  }
}
HWY_INLINE void unpack_nibbles(const std::byte* in, uint8_t* codes) {
  const hn::CappedTag<uint16_t, kTile / 2> u16;
  const hn::Rebind<uint8_t, decltype(u16)> u8;
  for (size_t i = 0; i < kTile; i += 2 * hn::Lanes(u16)) {
    const auto bytes = hn::PromoteTo(u16, hn::LoadU(u8, reinterpret_cast<const uint8_t*>(in + i / 2)));
    const auto low = hn::And(bytes, hn::Set(u16, 0x0F));
    const auto high = hn::And(hn::ShiftLeft<4>(bytes), hn::Set(u16, 0x0F00));
    const hn::Repartition<uint8_t, decltype(u16)> pairs;
    hn::StoreU(hn::BitCast(pairs, hn::Or(low, high)), pairs, codes + i);
  }
}

/// Bits 4 and 5 of four codes per byte.
HWY_INLINE void pack_pairs_of_bits(const uint8_t* codes, std::byte* out) {
  const hn::CappedTag<uint32_t, kTile / 4> u32;
  const hn::Rebind<uint8_t, decltype(u32)> u8;
  for (size_t i = 0; i < kTile; i += 4 * hn::Lanes(u32)) {
    const auto fours = hn::BitCast(u32, hn::LoadU(hn::Repartition<uint8_t, decltype(u32)>(), codes + i));
    auto bits = hn::And(hn::ShiftRight<4>(fours), hn::Set(u32, 0x03030303));
    bits = hn::Or(bits, hn::ShiftRight<6>(bits));
    bits = hn::Or(bits, hn::ShiftRight<12>(bits));
    hn::StoreU(hn::TruncateTo(u8, bits), u8, reinterpret_cast<uint8_t*>(out + i / 4));
  }
}
HWY_INLINE void add_pairs_of_bits(const std::byte* in, uint8_t* codes) {
  const hn::CappedTag<uint32_t, kTile / 4> u32;
  const hn::Rebind<uint8_t, decltype(u32)> u8;
  const hn::Repartition<uint8_t, decltype(u32)> fours;
  for (size_t i = 0; i < kTile; i += 4 * hn::Lanes(u32)) {
    auto bits = hn::PromoteTo(u32, hn::LoadU(u8, reinterpret_cast<const uint8_t*>(in + i / 4)));
    bits = hn::Or(bits, hn::ShiftLeft<12>(bits));
    bits = hn::And(hn::Or(bits, hn::ShiftLeft<6>(bits)), hn::Set(u32, 0x03030303));
    const auto low = hn::LoadU(fours, codes + i);
    hn::StoreU(hn::Or(low, hn::BitCast(fours, hn::ShiftLeft<4>(bits))), fours, codes + i);
  }
}

/// Bit 4 of eight codes per byte.
HWY_INLINE void pack_bits(const uint8_t* codes, std::byte* out) {
  const hn::CappedTag<uint8_t, kTile> u8;
  for (size_t i = 0; i < kTile; i += hn::Lanes(u8)) {
    uint8_t bits[std::max<size_t>(8, hn::MaxLanes(u8) / 8)];
    hn::StoreMaskBits(u8, hn::TestBit(hn::LoadU(u8, codes + i), hn::Set(u8, 0x10)), bits);
    std::memcpy(out + i / 8, bits, hn::Lanes(u8) / 8);
  }
}
HWY_INLINE void add_bits(const std::byte* in, uint8_t* codes) {
  const hn::CappedTag<uint8_t, kTile> u8;
  for (size_t i = 0; i < kTile; i += hn::Lanes(u8)) {
    uint8_t bits[std::max<size_t>(8, hn::MaxLanes(u8) / 8)] = {};
    std::memcpy(bits, in + i / 8, hn::Lanes(u8) / 8);
    const auto high = hn::IfThenElseZero(hn::LoadMaskBits(u8, bits), hn::Set(u8, 0x10));
    hn::StoreU(hn::Or(hn::LoadU(u8, codes + i), high), u8, codes + i);
  }
}

template <class Format>
HWY_INLINE void pack_tile(const uint8_t* codes, BlockPlanes out) {
  pack_nibbles(codes, out.codes);
  if constexpr (Format::kShape.high_bits == 1) pack_bits(codes, out.high);
  if constexpr (Format::kShape.high_bits == 2) pack_pairs_of_bits(codes, out.high);
}

template <class Format>
HWY_INLINE void unpack_tile(BlockView in, uint8_t* codes) {
  unpack_nibbles(in.codes, codes);
  if constexpr (Format::kShape.high_bits == 1) add_bits(in.high, codes);
  if constexpr (Format::kShape.high_bits == 2) add_pairs_of_bits(in.high, codes);
  const hn::CappedTag<uint8_t, kTile> u8;
  const auto sign = hn::Set(u8, Format::kSignBit);
  for (size_t i = 0; i < kTile; i += hn::Lanes(u8)) {  // as sign_extended()
    hn::StoreU(hn::Sub(hn::Xor(hn::LoadU(u8, codes + i), sign), sign), u8, codes + i);
  }
}

/// The codes of two tiles, packed one tile late: vectors that are loaded right after they were stored in
/// parts wait until all parts are in the cache.
class LatePacker {
 public:
  /// Where the codes of tile `idx` go.
  uint8_t* codes(size_t idx) { return codes_ + idx % 2 * kTile; }
  /// pack(codes, idx) for the tile before `idx`, if there is one.
  template <class Pack>
  HWY_INLINE void pack_before(size_t idx, Pack pack) {
    if (idx > 0) pack(codes(idx - 1), idx - 1);
  }

 private:
  HWY_ALIGN uint8_t codes_[2 * kTile];
};

template <class Format>
struct TilePlace {
  size_t begin;  ///< in the run
  BlockPlanes planes;
  typename Format::Code* codes;  ///< of the tile, perhaps not packed yet
};

template <class Format, bool kResidual>
HWY_INLINE BlockCounts encode_tile(const BlockInput& run, const LoadedTile<Format>& loaded,
                                   const TilePlace<Format>& tile) {
  constexpr BlockShape kShape = Format::kShape;
  HWY_ALIGN float offsets[kTile];
  const bool stochastic = Format::kRounds && run.stochastic;
  for (size_t i = 0; i < kShape.codes(kTile); i += 64) prefetch_ahead(tile.planes.codes + i);
  if (stochastic) stochastic_offsets({run.random.step, run.random.first + tile.begin}, offsets);
  BlockCounts counts;
  for (size_t i = 0; i < kTile; i += kShape.block) {
    const LoadedBlock<Format> block = {.begin = tile.begin + i,
                                       .sum = loaded.sum + i,
                                       .absmax_bits = loaded.absmax_bits[i / kShape.block],
                                       .scale = tile.planes.scales + kShape.scales(i),
                                       .codes = tile.codes + i};
    counts += encode_block<Format, kResidual>(run, block, stochastic ? offsets + i : nullptr);
  }
  return counts;
}

/// Each tile is loaded before the one before it is encoded, so that neither waits for the other's scales.
template <class Format, bool kResidual>
HWY_INLINE BlockCounts encode_tiles(const BlockInput& run, BlockPlanes out) {
  using Code = typename Format::Code;
  constexpr BlockShape kShape = Format::kShape;
  static_assert(kTile % kShape.block == 0);
  const size_t n_tiles = run.in.size() / kTile;
  LatePacker packer;
  const auto pack = [&](const uint8_t* codes, size_t t) HWY_ATTR {
    if constexpr (Format::kPacked) pack_tile<Format>(codes, kShape.at(out, t * kTile));
  };
  BlockCounts counts;
  LoadedTile<Format> loaded[2];
  if (n_tiles > 0) load_tile<Format, kResidual>(run, 0, loaded[0]);
  for (size_t t = 0; t < n_tiles; ++t) {
    if (t + 1 < n_tiles) load_tile<Format, kResidual>(run, (t + 1) * kTile, loaded[(t + 1) % 2]);
    const BlockPlanes planes = kShape.at(out, t * kTile);
    auto* const codes =
        reinterpret_cast<Code*>(Format::kPacked ? packer.codes(t) : reinterpret_cast<uint8_t*>(planes.codes));
    counts += encode_tile<Format, kResidual>(run, loaded[t % 2], {t * kTile, planes, codes});
    packer.pack_before(t, pack);
  }
  packer.pack_before(n_tiles, pack);
  const size_t done = n_tiles * kTile;
  if (done < run.in.size())
    counts += scalar::encode_blocks<Format>(scalar::part_of(run, done, kTile), kShape.at(out, done));
  return counts;
}

template <class Format>
BlockCounts encode_run(const BlockInput& run, BlockPlanes out) {
  return run.residual != nullptr ? encode_tiles<Format, true>(run, out)
                                 : encode_tiles<Format, false>(run, out);
}

template <class Format, bool kAdd>
HWY_INLINE void decode_tiles(BlockView in, float* out, size_t n_tiles) {
  using Code = typename Format::Code;
  const F f;
  constexpr BlockShape kShape = Format::kShape;
  HWY_ALIGN Code unpacked[kTile];
  for (size_t begin = 0; begin < n_tiles * kTile; begin += kTile) {
    const BlockView tile = kShape.at(in, begin);
    const Code* codes = reinterpret_cast<const Code*>(tile.codes);
    if constexpr (Format::kPacked) {
      unpack_tile<Format>(tile, unpacked);
      codes = unpacked;
    }
    for (size_t i = 0; i < kTile; i += kShape.block) {
      const auto step = hn::Set(f, Format::step(wire_scale<Format>(tile.scales + kShape.scales(i))));
      for (size_t j = i; j < i + kShape.block; j += hn::Lanes(f)) {
        float* const to = out + begin + j;
        if constexpr (kAdd) prefetch_ahead(to);
        const auto value = hn::Mul(load_codes<Format>(codes + j), step);
        hn::StoreU(kAdd ? hn::Add(hn::LoadU(f, to), value) : value, f, to);
      }
    }
  }
}

template <class Format>
void decode_run(BlockView in, std::span<float> out, Decode how) {
  const size_t n_tiles = out.size() / kTile;
  if (how == Decode::kSet)
    decode_tiles<Format, false>(in, out.data(), n_tiles);
  else
    decode_tiles<Format, true>(in, out.data(), n_tiles);
  const size_t done = n_tiles * kTile;
  scalar::decode_blocks<Format>(Format::kShape.at(in, done), out.subspan(done), how);
}

#else
template <class Format>
BlockCounts encode_run(const BlockInput& run, BlockPlanes out) {
  return scalar::encode_blocks<Format>(run, out);
}
template <class Format>
void decode_run(BlockView in, std::span<float> out, Decode how) {
  scalar::decode_blocks<Format>(in, out, how);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#endif  // TERN_KERNELS_CPU_BLOCK_CODEC_INL_H_
