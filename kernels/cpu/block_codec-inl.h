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
#include "kernels/cpu/prefetch.h"
#include "kernels/cpu/short_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr size_t kTile = 128;

#if HWY_TARGET != HWY_SCALAR  // which has no vectors to pack from
using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using U = hn::RebindToUnsigned<F>;
using VF = hn::VFromD<F>;

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

/// Philox(kElementSeed, step) of one block number per lane: words[j] is number 4 * block + j of the stream.
HWY_INLINE void philox_words(hn::VFromD<U> block, uint32_t block_high, uint32_t step,
                             hn::VFromD<U> (&words)[4]) {
  const U u32;
  const hn::Repartition<uint64_t, U> u64;
  const auto multiply = [&](hn::VFromD<U> a, uint32_t b, hn::VFromD<U>& high) HWY_ATTR {
    const auto factor = hn::Set(u32, b);
    const auto even = hn::MulEven(a, factor);
    const auto odd = hn::MulEven(hn::BitCast(u32, hn::ShiftRight<32>(hn::BitCast(u64, a))), factor);
    high = hn::OddEven(hn::BitCast(u32, odd), hn::BitCast(u32, hn::ShiftRight<32>(even)));
    return hn::OddEven(hn::BitCast(u32, hn::ShiftLeft<32>(odd)), hn::BitCast(u32, even));
  };
  auto c0 = block;
  auto c1 = hn::Set(u32, block_high);
  auto c2 = hn::Set(u32, step);
  auto c3 = hn::Zero(u32);
  auto key0 = static_cast<uint32_t>(kElementSeed);
  auto key1 = static_cast<uint32_t>(kElementSeed >> 32);
  for (int round = 0; round < 10; ++round) {
    hn::VFromD<U> high0, high1;
    const auto low0 = multiply(c0, 0xD2511F53, high0);
    const auto low1 = multiply(c2, 0xCD9E8D57, high1);
    c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(u32, key0));
    c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(u32, key1));
    c1 = low1;
    c3 = low0;
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

/// stochastic_offset() of kTile elements.
HWY_INLINE void stochastic_offsets(const ElementRandom& random, float* HWY_RESTRICT out) {
  const U u32;
  const F f;
  constexpr size_t kLanes = hn::MaxLanes(u32);
  const uint64_t first_block = random.first / 4;
  const size_t skipped = random.first % 4;
  HWY_ALIGN float offsets[kTile + 4 * kLanes];
  for (size_t at = 0; at < kTile + skipped; at += 4 * kLanes) {
    const uint64_t block = first_block + at / 4;
    const auto low = static_cast<uint32_t>(block);
    const auto high = static_cast<uint32_t>(block >> 32);
    if (low > UINT32_MAX - kLanes) [[unlikely]] {  // lanes that differ in the upper half
      const Philox philox(kElementSeed, random.step);
      for (size_t i = 0; i < 4 * kLanes; ++i) offsets[at + i] = stochastic_offset(philox.at(4 * block + i));
      continue;
    }
    hn::VFromD<U> words[4];
    philox_words(hn::Add(hn::Iota(u32, 0), hn::Set(u32, low)), high, random.step, words);
    const auto offset = [&](hn::VFromD<U> word) HWY_ATTR {
      return hn::Mul(hn::ConvertTo(f, hn::BitCast(I(), hn::ShiftRight<16>(word))), hn::Set(f, 0x1p-16F));
    };
    hn::StoreInterleaved4(offset(words[0]), offset(words[1]), offset(words[2]), offset(words[3]), f,
                          offsets + at);
  }
  std::memcpy(out, offsets + skipped, kTile * sizeof(float));
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

/// Where a block's scale and codes go.
template <class Format>
struct BlockPlace {
  std::byte* scale;
  typename Format::Code* codes;
};

/// The block of a run that starts at `begin`; offsets (null: to the nearest) are those of the block. The run
/// stays where it is: describing the block in memory would cost more than scaling it.
template <class Format, bool kResidual>
HWY_INLINE BlockCounts encode_block(const BlockInput& run, size_t begin, const float* offsets,
                                    BlockPlace<Format> to) {
  const F f;
  const I i32;
  constexpr size_t kBlock = Format::kShape.block;
  const float* const in = run.in.data() + begin;
  float* const residual = kResidual ? run.residual + begin : nullptr;
  HWY_ALIGN float sum[kBlock];
  auto absmax = hn::Zero(i32);
  for (size_t i = 0; i < kBlock; i += hn::Lanes(f)) {
    const auto v = load_value<kResidual>(in, residual, sum, i);
    absmax = hn::Max(absmax, hn::BitCast(i32, hn::Abs(v)));  // as integers, so that NaN is the largest
  }
  const auto bits = static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(i32, absmax)));
  if (bits >= kHugeBits) [[unlikely]]  // or not finite
    return scalar::quantise<Format>(scalar::part_of(run, begin, kBlock), to.codes, to.scale);
  const Scaling s = Format::scaling(std::bit_cast<float>(bits));
  if (s.lift != 1.0F) [[unlikely]]
    return scalar::quantise<Format>(scalar::part_of(run, begin, kBlock), to.codes, to.scale);
  std::memcpy(to.scale, &s.wire, Format::kShape.scale_bytes);
  const auto inverse = hn::Set(f, s.inverse);
  const auto step = hn::Set(f, s.step);
  BlockCounts counts;
  for (size_t i = 0; i < kBlock; i += hn::Lanes(f)) {
    const auto v = kResidual ? hn::Load(f, sum + i) : hn::LoadU(f, in + i);
    const auto x = hn::Mul(v, inverse);
    if constexpr (!Format::kRounds) {
      if constexpr (Format::kLimit < HUGE_VALF)
        counts.n_saturated += hn::CountTrue(f, hn::Gt(hn::Abs(x), hn::Set(f, Format::kLimit)));
    }
    const auto decoded = store_codes<Format>(x, offsets != nullptr ? offsets + i : nullptr, to.codes + i);
    if constexpr (kResidual) hn::StoreU(hn::Sub(v, hn::Mul(decoded, step)), f, residual + i);
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

template <class Format, bool kResidual>
HWY_INLINE BlockCounts encode_tile(const BlockInput& run, size_t begin, BlockPlanes out,
                                   typename Format::Code* codes) {
  constexpr BlockShape kShape = Format::kShape;
  HWY_ALIGN float offsets[kTile];
  const bool stochastic = Format::kRounds && run.stochastic;
  for (size_t i = 0; i < kShape.codes(kTile); i += 64) prefetch_ahead(out.codes + i);
  if (stochastic) stochastic_offsets({run.random.step, run.random.first + begin}, offsets);
  BlockCounts counts;
  for (size_t i = 0; i < kTile; i += kShape.block) {
    counts += encode_block<Format, kResidual>(run, begin + i, stochastic ? offsets + i : nullptr,
                                              {out.scales + kShape.scales(i), codes + i});
  }
  return counts;
}

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
  for (size_t t = 0; t < n_tiles; ++t) {
    const BlockPlanes planes = kShape.at(out, t * kTile);
    auto* const codes =
        reinterpret_cast<Code*>(Format::kPacked ? packer.codes(t) : reinterpret_cast<uint8_t*>(planes.codes));
    counts += encode_tile<Format, kResidual>(run, t * kTile, planes, codes);
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
