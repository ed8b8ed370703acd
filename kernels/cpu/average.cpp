#include <bit>

#include "kernels/arithmetic.h"
#include "kernels/reduce.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/average.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/short_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {

template <class T>
void average_floats(T* data, int n_ranks, size_t n) {
  using A = Accumulator<T>;
  const hn::ScalableTag<A> d;
  const size_t n_lanes = hn::Lanes(d);
  const A divisor = static_cast<A>(n_ranks);
  // Multiplying by the inverse of a power of two rounds exactly as the division does, and is faster.
  const bool exact_inverse = std::has_single_bit(static_cast<unsigned>(n_ranks));
  const auto inverse_v = hn::Set(d, A{1} / divisor);
  const auto divisor_v = hn::Set(d, divisor);
  size_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) {
    const auto v = load_elements(d, data + i);
    store_elements(exact_inverse ? hn::Mul(v, inverse_v) : hn::Div(v, divisor_v), d, data + i);
  }
  for (; i < n; ++i) data[i] = divided(data[i], n_ranks);
}

/// Whole vectors of a scale(); returns the elements done.
template <class T>
size_t scale_floats(const ScaleArgs& args, const T* in, T* out) {
  using A = Accumulator<T>;
  const hn::ScalableTag<A> d;
  const size_t n_lanes = hn::Lanes(d);
  const auto factor = hn::Set(d, static_cast<A>(args.factor));
  size_t i = 0;
  for (; i + n_lanes <= args.n; i += n_lanes)
    store_elements(hn::Mul(load_elements(d, in + i), factor), d, out + i);
  return i;
}

template <class T>
void average_integers(T* data, int n_ranks, size_t n) {
  for (size_t i = 0; i < n; ++i) data[i] = divided(data[i], n_ranks);
}

void average_vectors(Dtype dtype, void* data, int n_ranks, size_t n) {
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T>)
      average_integers(static_cast<T*>(data), n_ranks, n);
    else
      average_floats(static_cast<T*>(data), n_ranks, n);
  });
}

void scale_vectors(const ScaleArgs& args) {
  with_type(args.dtype, [&]<class T>(std::type_identity<T>) {
    const T* in = static_cast<const T*>(args.in);
    T* out = static_cast<T*>(args.out);
    size_t i = 0;
    if constexpr (!std::is_integral_v<T>) i = scale_floats(args, in, out);
    for (; i < args.n; ++i) out[i] = scaled(in[i], args.factor);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern {

HWY_EXPORT(average_vectors);
HWY_EXPORT(scale_vectors);

void average(Dtype dtype, void* data, int n_ranks, size_t n) {
  TERN_CHECK(n_ranks >= 1);
  if (n_ranks > 1 && n > 0) HWY_DYNAMIC_DISPATCH(average_vectors)(dtype, data, n_ranks, n);
}

void scale(const ScaleArgs& args) {
  HWY_DYNAMIC_DISPATCH(scale_vectors)(args);
}

}  // namespace tern
#endif  // HWY_ONCE
