// Vectors of fp32 from and to memory that holds fp32 or a shorter float, with the rounding of
// kernels/convert.h. Included once per instruction set (Highway's convention for -inl.h files).
#if defined(TERN_KERNELS_CPU_SHORT_FLOATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TERN_KERNELS_CPU_SHORT_FLOATS_INL_H_
#undef TERN_KERNELS_CPU_SHORT_FLOATS_INL_H_
#else
#define TERN_KERNELS_CPU_SHORT_FLOATS_INL_H_
#endif

#include <cstring>

#include <hwy/highway.h>

#include "kernels/convert.h"

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class T>
requires(!kIsFloat8<T>) HWY_INLINE hn::VFromD<D> load_elements(D d, const T* from) {
  return hn::LoadU(d, from);
}
template <class D, class T>
requires(!kIsFloat8<T>) HWY_INLINE void store_elements(hn::VFromD<D> v, D d, T* to) {
  hn::StoreU(v, d, to);
}

template <class D>
HWY_INLINE hn::VFromD<D> load_elements(D d, const Bfloat16* from) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  const auto bits = hn::LoadU(d16, reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
}
template <class D>
HWY_INLINE void store_elements(hn::VFromD<D> v, D /*d*/, Bfloat16* to) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  const auto bits = hn::BitCast(d32, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(d32, 0x7FFF)), odd);
  const auto quiet = hn::Or(bits, hn::Set(d32, 0x400000));
  const auto high = hn::IfThenElse(hn::RebindMask(d32, hn::IsNaN(v)), quiet, rounded);
  hn::StoreU(hn::TruncateTo(d16, hn::ShiftRight<16>(high)), d16, reinterpret_cast<uint16_t*>(to));
}

// AVX2 and AVX-512 convert fp16 in hardware; Highway's emulation elsewhere does not keep inf and NaN.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
template <class D>
HWY_INLINE hn::VFromD<D> load_elements(D d, const Float16* from) {
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(from)));
}
template <class D>
HWY_INLINE void store_elements(hn::VFromD<D> v, D /*d*/, Float16* to) {
  const hn::Rebind<hwy::float16_t, D> d16;
  hn::StoreU(hn::DemoteTo(d16, v), d16, reinterpret_cast<hwy::float16_t*>(to));
}
#else
template <class D>
HWY_INLINE hn::VFromD<D> load_elements(D d, const Float16* from) {
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  Float16 halves[hn::MaxLanes(d)];  // `from` need not be aligned
  std::memcpy(static_cast<void*>(halves), from, hn::Lanes(d) * sizeof(Float16));
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = to_float(halves[i]);
  return hn::Load(d, lanes);
}
template <class D>
HWY_INLINE void store_elements(hn::VFromD<D> v, D d, Float16* to) {
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  Float16 halves[hn::MaxLanes(d)];
  for (size_t i = 0; i < hn::Lanes(d); ++i) halves[i] = to_float16(lanes[i]);
  std::memcpy(static_cast<void*>(to), halves, hn::Lanes(d) * sizeof(Float16));
}
#endif

template <class D, class T>
requires kIsFloat8<T> HWY_INLINE hn::VFromD<D> load_elements(D d, const T* from) {
  using Traits = Float8Traits<T>;
  const hn::Rebind<uint8_t, D> d8;
  const hn::RebindToUnsigned<D> d32;
  const hn::RebindToSigned<D> di;
  const auto bits = hn::PromoteTo(d32, hn::LoadU(d8, reinterpret_cast<const uint8_t*>(from)));
  const auto sign = hn::ShiftLeft<24>(hn::And(bits, hn::Set(d32, 0x80)));
  const auto magnitude = hn::And(bits, hn::Set(d32, 0x7F));
  constexpr int kShift = 23 - Traits::kMantissaBits;
  const auto normal = hn::Add(hn::ShiftLeft<kShift>(magnitude),
                              hn::Set(d32, static_cast<uint32_t>(127 - Traits::kBias) << 23));
  const auto step = hn::Set(
      d, std::bit_cast<float>(static_cast<uint32_t>(128 - Traits::kBias - Traits::kMantissaBits) << 23));
  const auto small = hn::BitCast(d32, hn::Mul(hn::ConvertTo(d, hn::BitCast(di, magnitude)), step));
  const auto is_small = hn::Lt(magnitude, hn::Set(d32, 1U << Traits::kMantissaBits));
  const auto is_special = hn::Gt(magnitude, hn::Set(d32, Traits::kFirstSpecial - 1));
  auto special = hn::Set(d32, 0x7FC00000U);
  if constexpr (Traits::kFirstSpecial != Traits::kQuietNan) {
    const auto is_inf = hn::Eq(magnitude, hn::Set(d32, Traits::kFirstSpecial));
    special = hn::IfThenElse(is_inf, hn::Set(d32, 0x7F800000U), special);
  }
  const auto value = hn::IfThenElse(is_special, special, hn::IfThenElse(is_small, small, normal));
  return hn::BitCast(d, hn::Or(sign, value));
}
template <class D, class T>
requires kIsFloat8<T> HWY_INLINE void store_elements(hn::VFromD<D> v, D d, T* to) {
  using Traits = Float8Traits<T>;
  constexpr int kShift = 23 - Traits::kMantissaBits;
  constexpr uint32_t kMagic = static_cast<uint32_t>(128 - Traits::kBias + kShift) << 23;
  const hn::Rebind<uint8_t, D> d8;
  const hn::RebindToUnsigned<D> d32;
  const auto bits = hn::BitCast(d32, v);
  const auto sign = hn::And(hn::ShiftRight<24>(bits), hn::Set(d32, 0x80));
  const auto magnitude = hn::And(bits, hn::Set(d32, 0x7FFFFFFF));
  const auto odd = hn::And(hn::ShiftRight<kShift>(magnitude), hn::Set(d32, 1));
  const auto half = hn::Add(odd, hn::Set(d32, (1U << (kShift - 1)) - 1));
  const auto rebias = hn::Set(d32, static_cast<uint32_t>(127 - Traits::kBias) << Traits::kMantissaBits);
  const auto normal = hn::Sub(hn::ShiftRight<kShift>(hn::Add(magnitude, half)), rebias);
  const auto shifted = hn::Add(hn::BitCast(d, magnitude), hn::Set(d, std::bit_cast<float>(kMagic)));
  const auto small = hn::Sub(hn::BitCast(d32, shifted), hn::Set(d32, kMagic));
  const auto is_small = hn::Lt(magnitude, hn::Set(d32, static_cast<uint32_t>(128 - Traits::kBias) << 23));
  auto rounded = hn::Min(hn::IfThenElse(is_small, small, normal), hn::Set(d32, Traits::kLargest));
  rounded =
      hn::IfThenElse(hn::Gt(magnitude, hn::Set(d32, 0x7F800000U)), hn::Set(d32, Traits::kQuietNan), rounded);
  hn::StoreU(hn::TruncateTo(d8, hn::Or(sign, rounded)), d8, reinterpret_cast<uint8_t*>(to));
}

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#endif  // TERN_KERNELS_CPU_SHORT_FLOATS_INL_H_
