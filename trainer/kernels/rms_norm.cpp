#include "trainer/kernels/rms_norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trainer/kernels/rms_norm.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "trainer/kernels/both_floats.h"
#include "trainer/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tern::trainer {
namespace HWY_NAMESPACE {
namespace {

template <class T>
// NOLINTNEXTLINE(readability-function-size): the operands of the formula
HWY_INLINE void scale_row(const hn::ScalableTag<T> d, int64_t width, const T* x, T rstd, const T* weight,
                          T* y) {
  const auto factor = hn::Set(d, rstd);
  for_vectors(d, width, [&](int64_t i, auto lanes) HWY_ATTR {
    const auto normed = hn::Mul(lanes.load(d, x + i), factor);
    lanes.store(d, hn::Mul(normed, lanes.load(d, weight + i)), y + i);
  });
}

template <class T>
HWY_INLINE T sum_of_squares(const hn::ScalableTag<T> d, int64_t width, const T* x) {
  auto squares = hn::Zero(d);
  for_vectors(d, width, [&](int64_t i, auto lanes) HWY_ATTR {
    const auto v = lanes.load(d, x + i);
    squares = hn::MulAdd(v, v, squares);
  });
  return hn::GetLane(hn::SumOfLanes(d, squares));
}

template <class T>
void forward(const RmsNormForward<T>& a) {
  const hn::ScalableTag<T> d;
  for (int64_t row = 0; row < a.x.rows; ++row) {
    const T* x = a.x.row(row);
    const T mean = sum_of_squares(d, a.x.width, x) / static_cast<T>(a.x.width);
    a.rstd[row] = T{1} / std::sqrt(mean + a.eps);
    scale_row(d, a.x.width, x, a.rstd[row], a.weight, a.y.row(row));
  }
}

// With h = x * rstd and g = dy * weight: dx = rstd * (g - h * mean(g * h)).
template <class T>
void backward(const RmsNormBackward<T>& a) {
  const hn::ScalableTag<T> d;
  for (int64_t row = 0; row < a.x.rows; ++row) {
    const T* x = a.x.row(row);
    const T* dy = a.dy.row(row);
    T* dx = a.dx.row(row);
    auto dot = hn::Zero(d);
    for_vectors(d, a.x.width, [&](int64_t i, auto lanes) HWY_ATTR {
      const auto g = hn::Mul(lanes.load(d, dy + i), lanes.load(d, a.weight + i));
      dot = hn::MulAdd(g, lanes.load(d, x + i), dot);
    });
    const T rstd = a.rstd[row];
    const T mean = hn::GetLane(hn::SumOfLanes(d, dot)) * rstd / static_cast<T>(a.x.width);
    const auto scale = hn::Set(d, rstd);
    const auto pull = hn::Set(d, mean);
    const T* residual = a.residual.data == nullptr ? nullptr : a.residual.row(row);
    for_vectors(d, a.x.width, [&](int64_t i, auto lanes) HWY_ATTR {
      const auto upstream = lanes.load(d, dy + i);
      const auto h = hn::Mul(lanes.load(d, x + i), scale);
      const auto g = hn::Mul(upstream, lanes.load(d, a.weight + i));
      const auto base = residual == nullptr ? hn::Zero(d) : lanes.load(d, residual + i);
      lanes.store(d, hn::MulAdd(scale, hn::NegMulAdd(h, pull, g), base), dx + i);
      lanes.store(d, hn::MulAdd(upstream, h, lanes.load(d, a.dweight + i)), a.dweight + i);
    });
  }
}

template <class T>
void again(const RmsNormAgain<T>& a) {
  const hn::ScalableTag<T> d;
  for (int64_t row = 0; row < a.x.rows; ++row)
    scale_row(d, a.x.width, a.x.row(row), a.rstd[row], a.weight, a.y.row(row));
}

TERN_BOTH_FLOATS(forward, RmsNormForward)
TERN_BOTH_FLOATS(backward, RmsNormBackward)
TERN_BOTH_FLOATS(again, RmsNormAgain)

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tern::trainer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern::trainer {

TERN_DISPATCH_BOTH_FLOATS(rms_norm_forward, forward, RmsNormForward)
TERN_DISPATCH_BOTH_FLOATS(rms_norm_backward, backward, RmsNormBackward)
TERN_DISPATCH_BOTH_FLOATS(rms_norm_again, again, RmsNormAgain)

}  // namespace tern::trainer
#endif
