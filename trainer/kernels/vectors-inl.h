// Loops over arrays in whole SIMD vectors with a masked tail. Included once per SIMD target, hence no plain
// guard.
#if defined(TERN_TRAINER_KERNELS_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TERN_TRAINER_KERNELS_VECTORS_INL_H_
#undef TERN_TRAINER_KERNELS_VECTORS_INL_H_
#else
#define TERN_TRAINER_KERNELS_VECTORS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tern::trainer {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Loads and stores all lanes.
struct WholeVector {
  template <class D, class T = hn::TFromD<D>>
  HWY_INLINE hn::Vec<D> load(D d, const T* from) const {
    return hn::LoadU(d, from);
  }
  template <class D, class T = hn::TFromD<D>>
  HWY_INLINE void store(D d, hn::Vec<D> v, T* to) const {
    hn::StoreU(v, d, to);
  }
  /// v, with lanes beyond the end replaced by those of `otherwise`: there are none here.
  template <class D>
  HWY_INLINE hn::Vec<D> valid_or(D, hn::Vec<D> v, hn::Vec<D>) const {
    return v;
  }
};

/// Loads and stores the first n lanes; the others load as zero and are not written.
struct PartialVector {
  size_t n;
  template <class D, class T = hn::TFromD<D>>
  HWY_INLINE hn::Vec<D> load(D d, const T* from) const {
#if HWY_MEM_OPS_MIGHT_FAULT  // these targets load a whole, aligned vector and clear lanes afterwards
    HWY_ALIGN T lanes[hn::MaxLanes(D())] = {};
    for (size_t i = 0; i < n; ++i) lanes[i] = from[i];
    return hn::Load(d, lanes);
#else
    return hn::MaskedLoad(hn::FirstN(d, n), d, from);
#endif
  }
  template <class D, class T = hn::TFromD<D>>
  HWY_INLINE void store(D d, hn::Vec<D> v, T* to) const {
    hn::BlendedStore(v, hn::FirstN(d, n), d, to);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> valid_or(D d, hn::Vec<D> v, hn::Vec<D> otherwise) const {
    return hn::IfThenElse(hn::FirstN(d, n), v, otherwise);
  }
};

/// body(first element of a vector, WholeVector or PartialVector) for all of [0, n). The body needs HWY_ATTR.
template <class D, class Body>
HWY_INLINE void for_vectors(D d, int64_t n, const Body& body) {
  const auto n_lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) body(i, WholeVector{});
  if (i < n) body(i, PartialVector{static_cast<size_t>(n - i)});
}

}  // namespace HWY_NAMESPACE
}  // namespace tern::trainer
HWY_AFTER_NAMESPACE();

#endif
