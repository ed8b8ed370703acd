#include <bit>

#include "kernels/arithmetic.h"
#include "kernels/reduce.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/average.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/float16-inl.h"

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
  for (; i < n; ++i) data[i] = narrow<T>(widen(data[i]) / divisor);
}

template <class T>
void average_integers(T* data, int n_ranks, size_t n) {
  for (size_t i = 0; i < n; ++i) data[i] = static_cast<T>(data[i] / static_cast<int64_t>(n_ranks));
}

void average_vectors(Dtype dtype, void* data, int n_ranks, size_t n) {
  switch (dtype) {
    case Dtype::kFloat32:
      return average_floats(static_cast<float*>(data), n_ranks, n);
    case Dtype::kFloat64:
      return average_floats(static_cast<double*>(data), n_ranks, n);
    case Dtype::kFloat16:
      return average_floats(static_cast<Float16*>(data), n_ranks, n);
    case Dtype::kBfloat16:
      return average_floats(static_cast<Bfloat16*>(data), n_ranks, n);
    case Dtype::kInt32:
      return average_integers(static_cast<int32_t*>(data), n_ranks, n);
    case Dtype::kInt64:
      return average_integers(static_cast<int64_t*>(data), n_ranks, n);
    case Dtype::kUint8:
      return average_integers(static_cast<uint8_t*>(data), n_ranks, n);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern {

HWY_EXPORT(average_vectors);

void average(Dtype dtype, void* data, int n_ranks, size_t n) {
  TERN_CHECK(n_ranks >= 1);
  if (n_ranks > 1 && n > 0) HWY_DYNAMIC_DISPATCH(average_vectors)(dtype, data, n_ranks, n);
}

}  // namespace tern
#endif  // HWY_ONCE
