#include "trainer/kernels/causal_softmax.h"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trainer/kernels/causal_softmax.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "trainer/kernels/both_floats.h"
#include "trainer/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tern::trainer {
namespace HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE void clear(const hn::ScalableTag<T> d, T* to, int64_t n) {
  for_vectors(d, n, [&](int64_t i, auto lanes) HWY_ATTR { lanes.store(d, hn::Zero(d), to + i); });
}

template <class T>
void softmax(const CausalBlock& block, T* scores, T* inverse_sum, T* lse) {
  const hn::ScalableTag<T> d;
  const auto lowest = hn::Set(d, std::numeric_limits<T>::lowest());
  for (int64_t r = 0; r < block.rows; ++r) {
    T* row = scores + r * block.stride;
    const int64_t n = block.first_row + r + 1;
    auto largest = lowest;
    for_vectors(d, n, [&](int64_t i, auto lanes) HWY_ATTR {
      largest = hn::Max(largest, lanes.valid_or(d, lanes.load(d, row + i), lowest));
    });
    const T top = hn::GetLane(hn::MaxOfLanes(d, largest));
    const auto shift = hn::Set(d, top);
    auto sum = hn::Zero(d);
    for_vectors(d, n, [&](int64_t i, auto lanes) HWY_ATTR {
      const auto x = lanes.load(d, row + i);
      const auto p = hn::Exp(d, hn::Sub(x, shift));
      lanes.store(d, p, row + i);
      // x - x is zero, or NaN when x is not finite: exp() alone would turn a NaN into zero and hide it
      sum = hn::Add(sum, lanes.valid_or(d, hn::Add(p, hn::Sub(x, x)), hn::Zero(d)));
    });
    const T total = hn::GetLane(hn::SumOfLanes(d, sum));
    inverse_sum[r] = T{1} / total;
    lse[r] = top + std::log(total);
    clear(d, row + n, block.columns() - n);
  }
}

template <class T>
void softmax_backward(const CausalSoftmaxBackward<T>& a) {
  const hn::ScalableTag<T> d;
  for (int64_t r = 0; r < a.block.rows; ++r) {
    T* p_row = a.scores + r * a.block.stride;
    T* d_row = a.d_scores + r * a.block.stride;
    const int64_t n = a.block.first_row + r + 1;
    const auto lse = hn::Set(d, a.lse[r]);
    const auto dot = hn::Set(d, a.dot[r]);
    for_vectors(d, n, [&](int64_t i, auto lanes) HWY_ATTR {
      const auto p = hn::Exp(d, hn::Sub(lanes.load(d, p_row + i), lse));
      lanes.store(d, p, p_row + i);
      lanes.store(d, hn::Mul(p, hn::Sub(lanes.load(d, d_row + i), dot)), d_row + i);
    });
    clear(d, p_row + n, a.block.columns() - n);
    clear(d, d_row + n, a.block.columns() - n);
  }
}

template <class T>
void scale(const Rows<T>& x, const T* factor) {
  const hn::ScalableTag<T> d;
  for (int64_t r = 0; r < x.rows; ++r) {
    T* row = x.row(r);
    const auto by = hn::Set(d, factor[r]);
    for_vectors(d, x.width, [&](int64_t i, auto lanes) HWY_ATTR {
      lanes.store(d, hn::Mul(lanes.load(d, row + i), by), row + i);
    });
  }
}

template <class T>
void dot(const Rows<const T>& a, const Rows<const T>& b, T* out) {
  const hn::ScalableTag<T> d;
  for (int64_t r = 0; r < a.rows; ++r) {
    const T* left = a.row(r);
    const T* right = b.row(r);
    auto sum = hn::Zero(d);
    for_vectors(d, a.width, [&](int64_t i, auto lanes) HWY_ATTR {
      sum = hn::MulAdd(lanes.load(d, left + i), lanes.load(d, right + i), sum);
    });
    out[r] = hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

void softmax_f32(const CausalBlock& b, float* s, float* i, float* l) {
  softmax(b, s, i, l);
}
void softmax_f64(const CausalBlock& b, double* s, double* i, double* l) {
  softmax(b, s, i, l);
}
TERN_BOTH_FLOATS(softmax_backward, CausalSoftmaxBackward)
void scale_f32(const Rows<float>& x, const float* factor) {
  scale(x, factor);
}
void scale_f64(const Rows<double>& x, const double* factor) {
  scale(x, factor);
}
void dot_f32(const Rows<const float>& a, const Rows<const float>& b, float* out) {
  dot(a, b, out);
}
void dot_f64(const Rows<const double>& a, const Rows<const double>& b, double* out) {
  dot(a, b, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tern::trainer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern::trainer {

HWY_EXPORT(softmax_f32);
HWY_EXPORT(softmax_f64);
HWY_EXPORT(scale_f32);
HWY_EXPORT(scale_f64);
HWY_EXPORT(dot_f32);
HWY_EXPORT(dot_f64);

void causal_softmax(const CausalBlock& block, float* scores, float* inverse_sum, float* lse) {
  HWY_DYNAMIC_DISPATCH(softmax_f32)(block, scores, inverse_sum, lse);
}
void causal_softmax(const CausalBlock& block, double* scores, double* inverse_sum, double* lse) {
  HWY_DYNAMIC_DISPATCH(softmax_f64)(block, scores, inverse_sum, lse);
}
TERN_DISPATCH_BOTH_FLOATS(causal_softmax_backward, softmax_backward, CausalSoftmaxBackward)
void scale_rows(const Rows<float>& x, const float* factor) {
  HWY_DYNAMIC_DISPATCH(scale_f32)(x, factor);
}
void scale_rows(const Rows<double>& x, const double* factor) {
  HWY_DYNAMIC_DISPATCH(scale_f64)(x, factor);
}
void dot_rows(const Rows<const float>& a, const Rows<const float>& b, float* out) {
  HWY_DYNAMIC_DISPATCH(dot_f32)(a, b, out);
}
void dot_rows(const Rows<const double>& a, const Rows<const double>& b, double* out) {
  HWY_DYNAMIC_DISPATCH(dot_f64)(a, b, out);
}

}  // namespace tern::trainer
#endif
