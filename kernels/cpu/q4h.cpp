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

/// The lanes whose number has the bit `distance`, as sign bits.
HWY_INLINE VF upper_lanes(uint32_t distance) {
  const U u32;
  const auto is_upper = hn::Ne(hn::And(hn::Iota(u32, 0), hn::Set(u32, distance)), hn::Zero(u32));
  return hn::BitCast(F(), hn::IfThenElseZero(is_upper, hn::Set(u32, 0x80000000U)));
}

/// a + b in the lower lane of a pair, a - b in the upper one.
HWY_INLINE VF butterfly(VF v, VF swapped, uint32_t distance) {
  return hn::Add(swapped, hn::Xor(v, upper_lanes(distance)));
}

HWY_INLINE VF transform_lanes(VF v) {
  v = butterfly(v, hn::Shuffle2301(v), 1);
  v = butterfly(v, hn::Shuffle1032(v), 2);
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  v = butterfly(v, hn::SwapAdjacentBlocks(v), 4);
#endif
#if HWY_TARGET == HWY_AVX3
  v = butterfly(v, hn::ReverseBlocks(F(), hn::SwapAdjacentBlocks(v)), 8);
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

HWY_INLINE PhiloxBlock sign_words(const ElementRandom& random) {
  return Philox(kElementSeed, random.step).block(random.first | uint64_t{1} << 63);
}

/// Decoded values of vector j of a rotation whose integers were transformed.
HWY_INLINE VF decoded(VF transformed, VF step, const Signs& signs, size_t j) {
  return signs.flip(hn::Mul(transformed, step), j);
}

template <bool kResidual>
HWY_INLINE bool encode_block(const BlockInput& block, BlockPlanes out) {
  const F f;
  const I i32;
  const float* const in = block.in.data();
  const PhiloxBlock words = sign_words(block.random);
  HWY_ALIGN float sum[kTile];
  HWY_ALIGN float rotated[kTile];
  auto absmax = hn::Zero(i32);
  auto absmax_rotated = hn::Zero(f);
  for (size_t r = 0; r < kTile; r += kRotation) {
    const Signs signs(words[r / kRotation]);
    VF y[kVectors];
    for (size_t j = 0; j < kVectors; ++j) {
      const auto v = load_value<kResidual>(in, block.residual, sum, r + j * kLanes);
      absmax = hn::Max(absmax, hn::BitCast(i32, hn::Abs(v)));  // as integers, so that NaN is the largest
      y[j] = signs.flip(hn::Mul(v, hn::Set(f, 1.0F / kRotation)), j);
    }
    transform(y);
    for (size_t j = 0; j < kVectors; ++j) {
      absmax_rotated = hn::Max(absmax_rotated, hn::Abs(y[j]));
      hn::Store(y[j], f, rotated + r + j * kLanes);
    }
  }
  const auto bits = static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(i32, absmax)));
  constexpr uint32_t kTinyBits = std::bit_cast<uint32_t>(0x1p-80F);
  constexpr uint32_t kLargeBits = std::bit_cast<uint32_t>(0x1p124F);
  if (bits - kTinyBits >= kLargeBits - kTinyBits) [[unlikely]]  // tiny, zero, huge or not finite
    return scalar::q4h_encode(block, out).n_non_finite == 0;

  const Scaling s = Q4h::scaling(hn::GetLane(hn::MaxOfLanes(f, absmax_rotated)));
  std::memcpy(out.scales, &s.wire, sizeof(s.wire));
  const auto inverse = hn::Set(f, s.inverse);
  const auto step = hn::Set(f, s.step);
  HWY_ALIGN float offsets[kTile];
  if (block.stochastic) stochastic_offsets(block.random, offsets);
  HWY_ALIGN uint8_t codes[kTile];
  for (size_t r = 0; r < kTile; r += kRotation) {
    VF y[kVectors];
    for (size_t j = 0; j < kVectors; ++j) {
      const size_t i = r + j * kLanes;
      y[j] = store_codes<Q4h>(hn::Mul(hn::Load(f, rotated + i), inverse),
                              block.stochastic ? offsets + i : nullptr, codes + i);
    }
    if constexpr (kResidual) {
      const Signs signs(words[r / kRotation]);
      transform(y);
      for (size_t j = 0; j < kVectors; ++j) {
        const size_t i = r + j * kLanes;
        hn::StoreU(hn::Sub(hn::Load(f, sum + i), decoded(y[j], step, signs, j)), f, block.residual + i);
      }
    }
  }
  pack_nibbles(codes, out.codes);
  return true;
}

BlockCounts q4h_encode_run(const BlockInput& run, BlockPlanes out) {
  BlockCounts counts;
  size_t begin = 0;
  for (; begin + kTile <= run.in.size(); begin += kTile) {
    const BlockInput block = scalar::part_of(run, begin, kTile);
    const BlockPlanes planes = Q4h::kShape.at(out, begin);
    const bool finite =
        block.residual != nullptr ? encode_block<true>(block, planes) : encode_block<false>(block, planes);
    if (!finite) ++counts.n_non_finite;
  }
  counts += scalar::q4h_encode(scalar::part_of(run, begin, kTile), Q4h::kShape.at(out, begin));
  return counts;
}

template <bool kAdd>
HWY_INLINE void decode_block(BlockView in, float* out, const ElementRandom& random) {
  const F f;
  const PhiloxBlock words = sign_words(random);
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

void q4h_decode_run(BlockView in, std::span<float> out, Decode how, const ElementRandom& random) {
  size_t begin = 0;
  for (; begin + kTile <= out.size(); begin += kTile) {
    const BlockView planes = Q4h::kShape.at(in, begin);
    const ElementRandom of_block = {random.step, random.first + begin};
    if (how == Decode::kSet)
      decode_block<false>(planes, out.data() + begin, of_block);
    else
      decode_block<true>(planes, out.data() + begin, of_block);
  }
  scalar::q4h_decode(Q4h::kShape.at(in, begin), out.subspan(begin), how, {random.step, random.first + begin});
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
