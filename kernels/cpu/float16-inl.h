// Vectors of fp32 from and to memory that holds fp32, bf16 or fp16, with the rounding of kernels/convert.h.
// Included once per instruction set (Highway's convention for -inl.h files).
#if defined(TERN_KERNELS_CPU_FLOAT16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TERN_KERNELS_CPU_FLOAT16_INL_H_
#undef TERN_KERNELS_CPU_FLOAT16_INL_H_
#else
#define TERN_KERNELS_CPU_FLOAT16_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/convert.h"

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class T>
HWY_INLINE hn::VFromD<D> load_elements(D d, const T* from) {
  return hn::LoadU(d, from);
}
template <class D, class T>
HWY_INLINE void store_elements(hn::VFromD<D> v, D d, T* to) {
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
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = to_float(from[i]);
  return hn::Load(d, lanes);
}
template <class D>
HWY_INLINE void store_elements(hn::VFromD<D> v, D d, Float16* to) {
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) to[i] = to_float16(lanes[i]);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#endif  // TERN_KERNELS_CPU_FLOAT16_INL_H_
