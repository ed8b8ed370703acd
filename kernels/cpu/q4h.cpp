#include "kernels/q4h.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/q4h.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/block_codec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
BlockCounts q4h_encode_run(const BlockInput& run, BlockPlanes out) {
  return scalar::q4h_encode(run, out);
}
void q4h_decode_run(BlockView in, std::span<float> out, Decode how, const ElementRandom& random) {
  scalar::q4h_decode(in, out, how, random);
}
#else

constexpr size_t kLanes = hn::MaxLanes(F());
constexpr size_t kVectors = kRotation / kLanes;  // of one rotation
static_assert(kTile == Q4h::kShape.block && kLanes >= 4);

/// The sign bits of 32 elements, ready to be flipped with.
class Signs {
 public:
  explicit Signs(uint32_t word) : word_(word) {}
  /// Flips the signs of vector number `idx` of the 32 elements.
  HWY_INLINE VF flip(VF v, size_t idx) const {
    const U u32;
    const auto place = hn::Sub(hn::Set(u32, static_cast<uint32_t>(31 - idx * kLanes)), hn::Iota(u32, 0));
    const auto bit = hn::And(hn::Shl(hn::Set(u32, word_), place), hn::Set(u32, 0x80000000U));
    return hn::Xor(v, hn::BitCast(F(), bit));
  }

 private:
  uint32_t word_;
};

/// a + b in the lower lane of a pair, a - b in the upper one. The product is exact, so fused or not the sum
/// is rounded once.
HWY_INLINE VF butterfly(VF v, VF swapped, uint32_t distance) {
  const U u32;
  const F f;
  const auto is_upper = hn::Ne(hn::And(hn::Iota(u32, 0), hn::Set(u32, distance)), hn::Zero(u32));
  return hn::MulAdd(v, hn::IfThenElse(hn::RebindMask(f, is_upper), hn::Set(f, -1), hn::Set(f, 1)), swapped);
}

HWY_INLINE VF transform_lanes(VF v) {
  v = butterfly(v, hn::Shuffle2301(v), 1);
  v = butterfly(v, hn::Shuffle1032(v), 2);
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  v = butterfly(v, hn::SwapAdjacentBlocks(v), 4);
#endif
#if HWY_TARGET == HWY_AVX3
  const auto halves = hn::Xor(hn::Iota(I(), 0), hn::Set(I(), 8));
  v = butterfly(v, hn::TableLookupLanes(v, hn::IndicesFromVec(F(), halves)), 8);
#endif
  return v;
}

/// The Walsh-Hadamard transform of 32 values, unnormalised.
HWY_INLINE void transform(VF (&y)[kVectors]) {
  for (VF& v : y) v = transform_lanes(v);
  for (size_t distance = 1; distance < kVectors; distance *= 2) {
    for (size_t i = 0; i < kVectors; ++i) {
      if ((i & distance) != 0) continue;
      const auto a = y[i];
      const auto b = y[i + distance];
      y[i] = hn::Add(a, b);
      y[i + distance] = hn::Sub(a, b);
    }
  }
}

/// The words of signs of kLanes blocks one after the other.
class SignWords {
 public:
  SignWords(const ElementRandom& random, size_t begin) {
    const U u32;
    const uint64_t first = (random.first + begin) | uint64_t{1} << 63;
    const auto low = static_cast<uint32_t>(first);
    if (low > UINT32_MAX - kLanes * kTile) [[unlikely]] {  // lanes that differ in the upper half
      const Philox philox(kElementSeed, random.step);
      for (size_t i = 0; i < kLanes; ++i) {
        const PhiloxBlock block = philox.block(first + i * kTile);
        std::copy(block.begin(), block.end(), words_ + 4 * i);
      }
      return;
    }
    hn::VFromD<U> words[4];
    const auto numbers = hn::Add(hn::Set(u32, low), hn::ShiftLeft<7>(hn::Iota(u32, 0)));
    static_assert(kTile == 1 << 7);
    philox_words(numbers, static_cast<uint32_t>(first >> 32), random.step, words);
    hn::StoreInterleaved4(words[0], words[1], words[2], words[3], u32, words_);
  }
  /// Of block `idx`, one word per 32 elements.
  const uint32_t* of(size_t idx) const { return words_ + 4 * idx; }

 private:
  HWY_ALIGN uint32_t words_[4 * kLanes];
};

/// Decoded values of vector j of a rotation whose integers were transformed.
HWY_INLINE VF decoded(VF transformed, VF step, const Signs& signs, size_t j) {
  return signs.flip(hn::Mul(transformed, step), j);
}

/// What belongs to the block of a run that starts at `begin`.
struct Block {
  size_t begin;
  BlockPlanes planes;
  uint8_t* codes;  ///< not packed yet
};

/// A block in the first-level cache.
struct Loaded {
  HWY_ALIGN float sum[kTile];      ///< v, where it is a sum
  HWY_ALIGN float rotated[kTile];  ///< 32 y
  uint32_t absmax_bits = 0;        ///< of v
  float absmax_rotated = 0;
  uint32_t words[kTile / kRotation] = {};  ///< of signs
};

template <bool kResidual>
HWY_INLINE void load_block(const BlockInput& run, size_t begin, const uint32_t* words, Loaded& loaded) {
  const F f;
  const I i32;
  const float* const in = run.in.data() + begin;
  const float* const residual = kResidual ? run.residual + begin : nullptr;
  auto absmax = hn::Zero(i32);
  auto absmax_rotated = hn::Zero(f);
  for (size_t r = 0; r < kTile; r += kRotation) {
    const Signs signs(words[r / kRotation]);
    loaded.words[r / kRotation] = words[r / kRotation];
    VF y[kVectors];
    for (size_t j = 0; j < kVectors; ++j) {
      const auto v = load_value<kResidual>(in, residual, loaded.sum, r + j * kLanes);
      absmax = hn::Max(absmax, hn::BitCast(i32, hn::Abs(v)));  // as integers, so that NaN is the largest
      y[j] = signs.flip(v, j);
    }
    transform(y);
    for (size_t j = 0; j < kVectors; ++j) {
      absmax_rotated = hn::Max(absmax_rotated, hn::Abs(y[j]));
      hn::Store(y[j], f, loaded.rotated + r + j * kLanes);
    }
  }
  loaded.absmax_bits = static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(i32, absmax)));
  loaded.absmax_rotated = hn::GetLane(hn::MaxOfLanes(f, absmax_rotated));
}

template <bool kResidual>
HWY_INLINE bool encode_block(const BlockInput& run, const Block& block, const Loaded& loaded) {
  const F f;
  prefetch_ahead(block.planes.codes);
  constexpr uint32_t kTinyBits = std::bit_cast<uint32_t>(0x1p-80F);
  constexpr uint32_t kLargeBits = std::bit_cast<uint32_t>(0x1p120F);
  if (loaded.absmax_bits - kTinyBits >= kLargeBits - kTinyBits) [[unlikely]] {  // or zero, or not finite
    const BlockCounts counts = scalar::q4h_encode(scalar::part_of(run, block.begin, kTile), block.planes);
    unpack_nibbles(block.planes.codes, block.codes);
    return counts.n_non_finite == 0;
  }
  const Scaling s = Q4h::scaling(loaded.absmax_rotated / kRotation);
  std::memcpy(block.planes.scales, &s.wire, sizeof(s.wire));
  const auto inverse = hn::Set(f, 1.0F / kRotation * s.inverse);
  const auto step = hn::Set(f, s.step);
  HWY_ALIGN float offsets[kTile];
  if (run.stochastic) stochastic_offsets({run.random.step, run.random.first + block.begin}, offsets);
  for (size_t r = 0; r < kTile; r += kRotation) {
    VF y[kVectors];
    for (size_t j = 0; j < kVectors; ++j) {
      const size_t i = r + j * kLanes;
      y[j] = store_codes<Q4h>(hn::Mul(hn::Load(f, loaded.rotated + i), inverse),
                              run.stochastic ? offsets + i : nullptr, block.codes + i);
    }
    if constexpr (kResidual) {
      const Signs signs(loaded.words[r / kRotation]);
      transform(y);
      for (size_t j = 0; j < kVectors; ++j) {
        const size_t i = r + j * kLanes;
        hn::StoreU(hn::Sub(hn::Load(f, loaded.sum + i), decoded(y[j], step, signs, j)), f,
                   run.residual + block.begin + i);
      }
    }
  }
  return true;
}

template <bool kResidual>
HWY_INLINE BlockCounts encode_blocks(const BlockInput& run, BlockPlanes out) {
  BlockCounts counts;
  const size_t n_blocks = run.in.size() / kTile;
  LatePacker packer;
  const auto pack = [&](const uint8_t* codes, size_t b)
                        HWY_ATTR { pack_nibbles(codes, Q4h::kShape.at(out, b * kTile).codes); };
  // Each block is loaded before the one before it is encoded, so that neither waits for the other's scale.
  Loaded loaded[2];
  const auto encode = [&](size_t b) HWY_ATTR {
    const Block block = {
        .begin = b * kTile, .planes = Q4h::kShape.at(out, b * kTile), .codes = packer.codes(b)};
    if (!encode_block<kResidual>(run, block, loaded[b % 2])) ++counts.n_non_finite;
    packer.pack_before(b, pack);
  };
  for (size_t first = 0; first < n_blocks; first += kLanes) {
    const SignWords words(run.random, first * kTile);
    for (size_t b = first; b < std::min(first + kLanes, n_blocks); ++b) {
      load_block<kResidual>(run, b * kTile, words.of(b - first), loaded[b % 2]);
      if (b > 0) encode(b - 1);
    }
  }
  if (n_blocks > 0) encode(n_blocks - 1);
  packer.pack_before(n_blocks, pack);
  const size_t done = n_blocks * kTile;
  if (done < run.in.size())
    counts += scalar::q4h_encode(scalar::part_of(run, done, kTile), Q4h::kShape.at(out, done));
  return counts;
}

BlockCounts q4h_encode_run(const BlockInput& run, BlockPlanes out) {
  return run.residual != nullptr ? encode_blocks<true>(run, out) : encode_blocks<false>(run, out);
}

template <bool kAdd>
HWY_INLINE void decode_block(BlockView in, float* out, const uint32_t* words) {
  const F f;
  HWY_ALIGN uint8_t codes[kTile];
  unpack_tile<Q4h>(in, codes);
  const auto step = hn::Set(f, Q4h::step(wire_scale<Q4h>(in.scales)));
  for (size_t r = 0; r < kTile; r += kRotation) {
    const Signs signs(words[r / kRotation]);
    VF y[kVectors];
    for (size_t j = 0; j < kVectors; ++j) y[j] = load_codes<Q4h>(codes + r + j * kLanes);
    transform(y);
    for (size_t j = 0; j < kVectors; ++j) {
      float* const to = out + r + j * kLanes;
      if constexpr (kAdd) prefetch_ahead(to);
      const auto v = decoded(y[j], step, signs, j);
      hn::StoreU(kAdd ? hn::Add(hn::LoadU(f, to), v) : v, f, to);
    }
  }
}

template <bool kAdd>
HWY_INLINE void decode_blocks(BlockView in, float* out, size_t n_blocks, const ElementRandom& random) {
  for (size_t first = 0; first < n_blocks; first += kLanes) {
    const SignWords words(random, first * kTile);
    for (size_t b = first; b < std::min(first + kLanes, n_blocks); ++b)
      decode_block<kAdd>(Q4h::kShape.at(in, b * kTile), out + b * kTile, words.of(b - first));
  }
}

void q4h_decode_run(BlockView in, std::span<float> out, Decode how, const ElementRandom& random) {
  const size_t n_blocks = out.size() / kTile;
  if (how == Decode::kSet)
    decode_blocks<false>(in, out.data(), n_blocks, random);
  else
    decode_blocks<true>(in, out.data(), n_blocks, random);
  const size_t done = n_blocks * kTile;
  scalar::q4h_decode(Q4h::kShape.at(in, done), out.subspan(done), how, {random.step, random.first + done});
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern {

HWY_EXPORT(q4h_encode_run);
HWY_EXPORT(q4h_decode_run);

BlockCounts q4h_encode(const BlockInput& run, BlockPlanes out) {
  return HWY_DYNAMIC_DISPATCH(q4h_encode_run)(run, out);
}
void q4h_decode(BlockView in, std::span<float> out, Decode how, const ElementRandom& random) {
  HWY_DYNAMIC_DISPATCH(q4h_decode_run)(in, out, how, random);
}

}  // namespace tern
#endif  // HWY_ONCE
