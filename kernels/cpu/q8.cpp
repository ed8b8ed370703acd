#include "kernels/q8.h"

#include <cstring>

#include "kernels/block_scale.h"
#include "kernels/cpu/prefetch.h"
#include "kernels/scalar.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/q8.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using U = hn::RebindToUnsigned<F>;

/// v = in, or in + residual, copied to the first-level cache when it is a sum; returns the bits of max |v|.
template <bool kResidual>
HWY_INLINE uint32_t load_block(const float* in, const float* residual, float* HWY_RESTRICT sum) {
  const F f;
  const I i32;
  auto absmax = hn::Zero(i32);
  for (size_t i = 0; i < kQ8Block; i += hn::Lanes(f)) {
    prefetch_ahead(in + i);
    auto v = hn::LoadU(f, in + i);
    if constexpr (kResidual) {
      prefetch_ahead(residual + i);
      v = hn::Add(v, hn::LoadU(f, residual + i));
      hn::Store(v, f, sum + i);
    }
    absmax = hn::Max(absmax, hn::BitCast(i32, hn::Abs(v)));  // as integers, so that NaN is the largest
  }
  return static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(i32, absmax)));
}

/// Blocks whose bits of absmax are not 0 and not in [2^-100, inf) are left to the scalar kernel.
HWY_INLINE bool is_usual(uint32_t absmax_bits) {
  constexpr uint32_t kTinyBits = std::bit_cast<uint32_t>(0x1p-100F);
  return absmax_bits == 0 || absmax_bits - kTinyBits < kInfinityBits - kTinyBits;
}

template <bool kResidual>
HWY_INLINE bool encode_block(const float* in, float* residual, Q8Planes out) {
  const F f;
  const U u32;
  const hn::Rebind<uint8_t, F> u8;
  HWY_ALIGN float sum[kQ8Block];
  const uint32_t absmax_bits = load_block<kResidual>(in, residual, sum);
  if (!is_usual(absmax_bits)) [[unlikely]]
    return scalar::q8_encode({in, kQ8Block}, residual, out) == 0;

  const Bfloat16 scale = scale_of(std::bit_cast<float>(absmax_bits));
  std::memcpy(out.scales, &scale, sizeof(scale));
  const auto step = hn::Set(f, to_float(scale));
  // Of usual numbers, only an all-zero block has scale 0. NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
  const auto inverse = hn::Set(f, absmax_bits == 0 ? 0.0F : 1.0F / to_float(scale));
  const auto shift = hn::Set(f, kRoundingShift);
  for (size_t i = 0; i < kQ8Block; i += hn::Lanes(f)) {
    const auto v = kResidual ? hn::Load(f, sum + i) : hn::LoadU(f, in + i);
    const auto shifted = hn::Add(hn::Mul(v, inverse), shift);  // its low byte is the code: see nearest_code()
    hn::StoreU(hn::TruncateTo(u8, hn::BitCast(u32, shifted)), u8, reinterpret_cast<uint8_t*>(out.codes + i));
    if constexpr (kResidual) {
      hn::StoreU(hn::Sub(v, hn::Mul(hn::Sub(shifted, shift), step)), f, residual + i);
    }
  }
  return true;
}

template <bool kResidual>
size_t encode_blocks(const float* in, float* residual, size_t n_blocks, Q8Planes out) {
  size_t n_non_finite = 0;
  for (size_t b = 0; b < n_blocks; ++b) {
    const size_t at = b * kQ8Block;
    const Q8Planes planes = {.scales = out.scales + b * sizeof(Bfloat16), .codes = out.codes + at};
    if (!encode_block<kResidual>(in + at, kResidual ? residual + at : nullptr, planes)) ++n_non_finite;
  }
  return n_non_finite;
}

size_t q8_encode_blocks(const float* in, float* residual, size_t n_blocks, Q8Planes out) {
  return residual != nullptr ? encode_blocks<true>(in, residual, n_blocks, out)
                             : encode_blocks<false>(in, residual, n_blocks, out);
}

template <bool kAccumulate>
HWY_INLINE void decode_blocks(Q8View in, float* out, size_t n_blocks) {
  const F f;
  const I i32;
  const hn::Rebind<int8_t, F> i8;
  for (size_t b = 0; b < n_blocks; ++b) {
    Bfloat16 scale;
    std::memcpy(&scale, in.scales + b * sizeof(scale), sizeof(scale));
    const auto step = hn::Set(f, to_float(scale));
    for (size_t i = b * kQ8Block; i < (b + 1) * kQ8Block; i += hn::Lanes(f)) {
      if constexpr (kAccumulate) prefetch_ahead(out + i);
      const auto code = hn::LoadU(i8, reinterpret_cast<const int8_t*>(in.codes + i));
      const auto value = hn::Mul(hn::ConvertTo(f, hn::PromoteTo(i32, code)), step);
      hn::StoreU(kAccumulate ? hn::Add(hn::LoadU(f, out + i), value) : value, f, out + i);
    }
  }
}

void q8_decode_blocks(Q8View in, float* out, size_t n_blocks) {
  decode_blocks<false>(in, out, n_blocks);
}
void q8_decode_accumulate_blocks(Q8View in, float* out, size_t n_blocks) {
  decode_blocks<true>(in, out, n_blocks);
}

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern {

HWY_EXPORT(q8_encode_blocks);
HWY_EXPORT(q8_decode_blocks);
HWY_EXPORT(q8_decode_accumulate_blocks);

namespace {

/// The planes of what follows the full blocks of n elements.
template <class Planes>
Planes tail_planes(Planes planes, size_t n) {
  return {.scales = planes.scales + n / kQ8Block * sizeof(Bfloat16),
          .codes = planes.codes + n / kQ8Block * kQ8Block};
}

}  // namespace

size_t q8_encode(std::span<const float> in, float* residual, Q8Planes out) {
  const size_t n_blocks = in.size() / kQ8Block;
  const size_t done = n_blocks * kQ8Block;
  const size_t n_non_finite = HWY_DYNAMIC_DISPATCH(q8_encode_blocks)(in.data(), residual, n_blocks, out);
  return n_non_finite + scalar::q8_encode(in.subspan(done), residual != nullptr ? residual + done : nullptr,
                                          tail_planes(out, in.size()));
}

void q8_decode(Q8View in, std::span<float> out) {
  const size_t n_blocks = out.size() / kQ8Block;
  HWY_DYNAMIC_DISPATCH(q8_decode_blocks)(in, out.data(), n_blocks);
  scalar::q8_decode(tail_planes(in, out.size()), out.subspan(n_blocks * kQ8Block));
}

void q8_decode_accumulate(Q8View in, std::span<float> out) {
  const size_t n_blocks = out.size() / kQ8Block;
  HWY_DYNAMIC_DISPATCH(q8_decode_accumulate_blocks)(in, out.data(), n_blocks);
  scalar::q8_decode_accumulate(tail_planes(in, out.size()), out.subspan(n_blocks * kQ8Block));
}

}  // namespace tern
#endif  // HWY_ONCE
