#include "kernels/sign1.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/sign1.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/block_codec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
BlockCounts sign1_encode_run(const BlockInput& run, BlockPlanes out) {
  return scalar::sign1_encode(run, out);
}
void sign1_decode_run(BlockView in, std::span<float> out, Decode how) {
  scalar::sign1_decode(in, out, how);
}
#else

constexpr size_t kBlock = kSign1Shape.block;
constexpr size_t kLanes = hn::MaxLanes(F());

HWY_INLINE uint64_t bits_of(hn::Mask<F> mask) {
  uint8_t bits[8] = {};  // StoreMaskBits may write 8
  hn::StoreMaskBits(F(), mask, bits);
  uint64_t word = 0;
  std::memcpy(&word, bits, sizeof(word));
  return word & ((uint64_t{1} << kLanes) - 1);
}

HWY_INLINE hn::Mask<F> mask_of(uint64_t word) {
  uint8_t bits[8];
  std::memcpy(bits, &word, sizeof(word));
  return hn::LoadMaskBits(F(), bits);
}

struct Loaded {
  uint32_t absmax_bits = 0;
  uint32_t used = 0;  ///< bit g: granule g is not all zero
};

/// v of a block to the first-level cache when it is a sum; the partial sums of |v|.
template <bool kResidual>
HWY_INLINE Loaded load_block(const BlockInput& block, float* HWY_RESTRICT sum, float* HWY_RESTRICT sums) {
  const F f;
  const I i32;
  constexpr size_t kVectors = kSignSums / kLanes;
  VF partial[kVectors];
  for (VF& p : partial) p = hn::Zero(f);
  auto absmax = hn::Zero(i32);
  Loaded loaded;
  for (size_t g = 0; g < kBlock / kSignGranule; ++g) {
    auto granule_max = hn::Zero(i32);
    for (size_t i = g * kSignGranule; i < (g + 1) * kSignGranule; i += kSignSums) {
      for (size_t j = 0; j < kVectors; ++j) {
        const auto v = hn::Abs(load_value<kResidual>(block.in.data(), block.residual, sum, i + j * kLanes));
        granule_max = hn::Max(granule_max, hn::BitCast(i32, v));  // as integers, so that NaN is the largest
        partial[j] = hn::Add(partial[j], v);
      }
    }
    absmax = hn::Max(absmax, granule_max);
    if (!hn::AllTrue(i32, hn::Eq(granule_max, hn::Zero(i32)))) loaded.used |= uint32_t{1} << g;
  }
  for (size_t j = 0; j < kVectors; ++j) hn::StoreU(partial[j], f, sums + j * kLanes);
  loaded.absmax_bits = static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(i32, absmax)));
  return loaded;
}

template <bool kResidual>
HWY_INLINE bool encode_block(const BlockInput& block, BlockPlanes out) {
  const F f;
  HWY_ALIGN float sum[kBlock];
  HWY_ALIGN float sums[kSignSums];
  const Loaded loaded = load_block<kResidual>(block, sum, sums);
  constexpr uint32_t kTinyBits = std::bit_cast<uint32_t>(0x1p-60F);
  constexpr uint32_t kLargeBits = std::bit_cast<uint32_t>(0x1p100F);
  if (loaded.absmax_bits - kTinyBits >= kLargeBits - kTinyBits) [[unlikely]]  // or zero, or not finite
    return scalar::sign1_encode(block, out).n_non_finite == 0;
  const size_t n_used = kSignGranule * static_cast<size_t>(std::popcount(loaded.used));
  const uint16_t scale = sign1_scale(std::span<float, kSignSums>(sums, kSignSums), n_used, 1);
  std::memcpy(out.scales, &scale, sizeof(scale));
  std::memcpy(out.high, &loaded.used, sizeof(loaded.used));
  const auto step = hn::Set(f, to_float(Bfloat16{scale}));
  for (size_t g = 0; g < kBlock / kSignGranule; ++g) {
    const auto sent = (loaded.used >> g & 1) != 0 ? step : hn::Zero(f);
    uint64_t word = 0;
    for (size_t j = 0; j < kSignGranule; j += kLanes) {
      const size_t i = g * kSignGranule + j;
      const auto v = kResidual ? hn::Load(f, sum + i) : hn::LoadU(f, block.in.data() + i);
      const auto negative = hn::Lt(v, hn::Zero(f));
      word |= bits_of(negative) << j;
      if constexpr (kResidual)
        hn::StoreU(hn::Sub(v, hn::IfThenElse(negative, hn::Neg(sent), sent)), f, block.residual + i);
    }
    std::memcpy(out.codes + g * sizeof(word), &word, sizeof(word));
  }
  return true;
}

BlockCounts sign1_encode_run(const BlockInput& run, BlockPlanes out) {
  BlockCounts counts;
  size_t begin = 0;
  for (; begin + kBlock <= run.in.size(); begin += kBlock) {
    const BlockInput block = scalar::part_of(run, begin, kBlock);
    const BlockPlanes planes = kSign1Shape.at(out, begin);
    const bool finite =
        block.residual != nullptr ? encode_block<true>(block, planes) : encode_block<false>(block, planes);
    if (!finite) ++counts.n_non_finite;
  }
  counts += scalar::sign1_encode(scalar::part_of(run, begin, kBlock), kSign1Shape.at(out, begin));
  return counts;
}

template <bool kAdd>
HWY_INLINE void decode_block(BlockView in, float* out) {
  const F f;
  uint32_t used = 0;
  std::memcpy(&used, in.high, sizeof(used));
  const auto step = hn::Set(f, bf16_step(in.scales));
  for (size_t g = 0; g < kBlock / kSignGranule; ++g) {
    const bool is_used = (used >> g & 1) != 0;
    if (kAdd && !is_used) continue;
    const auto sent = is_used ? step : hn::Zero(f);
    uint64_t word = 0;
    if (is_used) std::memcpy(&word, in.codes + g * sizeof(word), sizeof(word));
    for (size_t j = 0; j < kSignGranule; j += kLanes) {
      float* const to = out + g * kSignGranule + j;
      if constexpr (kAdd) prefetch_ahead(to);
      const auto v = hn::IfThenElse(mask_of(word >> j), hn::Neg(sent), sent);
      hn::StoreU(kAdd ? hn::Add(hn::LoadU(f, to), v) : v, f, to);
    }
  }
}

void sign1_decode_run(BlockView in, std::span<float> out, Decode how) {
  size_t begin = 0;
  for (; begin + kBlock <= out.size(); begin += kBlock) {
    const BlockView planes = kSign1Shape.at(in, begin);
    if (how == Decode::kSet)
      decode_block<false>(planes, out.data() + begin);
    else
      decode_block<true>(planes, out.data() + begin);
  }
  scalar::sign1_decode(kSign1Shape.at(in, begin), out.subspan(begin), how);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern {

HWY_EXPORT(sign1_encode_run);
HWY_EXPORT(sign1_decode_run);

BlockCounts sign1_encode(const BlockInput& run, BlockPlanes out) {
  return HWY_DYNAMIC_DISPATCH(sign1_encode_run)(run, out);
}
void sign1_decode(BlockView in, std::span<float> out, Decode how) {
  HWY_DYNAMIC_DISPATCH(sign1_decode_run)(in, out, how);
}

}  // namespace tern
#endif  // HWY_ONCE
