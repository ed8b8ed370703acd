#include "trainer/kernels/swiglu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trainer/kernels/swiglu.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "trainer/kernels/both_floats.h"
#include "trainer/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tern::trainer {
namespace HWY_NAMESPACE {
namespace {

// exp is finite up to here in fp32; the sigmoid is then zero to the last bit that matters.
constexpr int kLargestExponent = 88;

template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  using T = hn::TFromD<D>;
  const V one = hn::Set(d, T{1});
  const V exponent = hn::Min(hn::Neg(x), hn::Set(d, static_cast<T>(kLargestExponent)));
  return hn::Div(one, hn::Add(one, hn::Exp(d, exponent)));
}

template <class T>
void forward(const SwigluForward<T>& a) {
  const hn::ScalableTag<T> d;
  for (int64_t row = 0; row < a.gate_up.rows; ++row) {
    const T* gate = a.gate_up.row(row);
    const T* up = gate + a.out.width;
    T* out = a.out.row(row);
    for_vectors(d, a.out.width, [&](int64_t i, auto lanes) HWY_ATTR {
      const auto g = lanes.load(d, gate + i);
      lanes.store(d, hn::Mul(hn::Mul(g, sigmoid(d, g)), lanes.load(d, up + i)), out + i);
    });
  }
}

template <class T>
void backward(const SwigluBackward<T>& a) {
  const hn::ScalableTag<T> d;
  const auto one = hn::Set(d, T{1});
  for (int64_t row = 0; row < a.gate_up.rows; ++row) {
    T* gate = a.gate_up.row(row);
    T* up = gate + a.d_out.width;
    T* d_out = a.d_out.row(row);
    for_vectors(d, a.d_out.width, [&](int64_t i, auto lanes) HWY_ATTR {
      const auto g = lanes.load(d, gate + i);
      const auto u = lanes.load(d, up + i);
      const auto upstream = lanes.load(d, d_out + i);
      const auto s = sigmoid(d, g);
      const auto silu = hn::Mul(g, s);
      const auto slope = hn::Mul(s, hn::MulAdd(g, hn::Sub(one, s), one));  // d silu / d gate
      lanes.store(d, hn::Mul(hn::Mul(upstream, u), slope), gate + i);
      lanes.store(d, hn::Mul(upstream, silu), up + i);
      lanes.store(d, hn::Mul(silu, u), d_out + i);
    });
  }
}

TERN_BOTH_FLOATS(forward, SwigluForward)
TERN_BOTH_FLOATS(backward, SwigluBackward)

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tern::trainer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern::trainer {

TERN_DISPATCH_BOTH_FLOATS(swiglu_forward, forward, SwigluForward)
TERN_DISPATCH_BOTH_FLOATS(swiglu_backward, backward, SwigluBackward)

}  // namespace tern::trainer
#endif
