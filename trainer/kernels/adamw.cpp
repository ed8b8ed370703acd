#include "trainer/kernels/adamw.h"

#include <cmath>

#include "runtime/base/status.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trainer/kernels/adamw.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "trainer/kernels/vectors-inl.h"

#ifndef TERN_TRAINER_KERNELS_ADAMW_ONCE_
#define TERN_TRAINER_KERNELS_ADAMW_ONCE_
namespace tern::trainer {

/// The factors of one update, rounded to T once, and the elements it works on.
template <class T>
struct AdamWRange {
  T grad_scale, beta1, one_minus_beta1, beta2, one_minus_beta2;
  T keep;       // 1 - lr * weight_decay
  T rate;       // lr / (1 - beta1^step)
  T inverse_v;  // 1 / (1 - beta2^step)
  T eps;
  T* params;
  const T* grads;
  T* m;
  T* v;
};

}  // namespace tern::trainer
#endif

HWY_BEFORE_NAMESPACE();
namespace tern::trainer {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void update(const AdamWRange<T>& a, Range range) {
  const hn::ScalableTag<T> d;
  const auto grad_scale = hn::Set(d, a.grad_scale);
  const auto beta1 = hn::Set(d, a.beta1);
  const auto one_minus_beta1 = hn::Set(d, a.one_minus_beta1);
  const auto beta2 = hn::Set(d, a.beta2);
  const auto one_minus_beta2 = hn::Set(d, a.one_minus_beta2);
  const auto keep = hn::Set(d, a.keep);
  const auto rate = hn::Set(d, a.rate);
  const auto inverse_v = hn::Set(d, a.inverse_v);
  const auto eps = hn::Set(d, a.eps);
  for_vectors(d, range.size(), [&](int64_t offset, auto lanes) HWY_ATTR {
    const int64_t i = range.begin + offset;
    const auto g = hn::Mul(lanes.load(d, a.grads + i), grad_scale);
    const auto m = hn::MulAdd(beta1, lanes.load(d, a.m + i), hn::Mul(one_minus_beta1, g));
    const auto v = hn::MulAdd(beta2, lanes.load(d, a.v + i), hn::Mul(one_minus_beta2, hn::Mul(g, g)));
    lanes.store(d, m, a.m + i);
    lanes.store(d, v, a.v + i);
    const auto denominator = hn::Add(hn::Sqrt(hn::Mul(v, inverse_v)), eps);
    const auto kept = hn::Mul(lanes.load(d, a.params + i), keep);
    lanes.store(d, hn::Sub(kept, hn::Div(hn::Mul(rate, m), denominator)), a.params + i);
  });
}

void update_f32(const AdamWRange<float>& a, Range range) {
  update(a, range);
}
void update_f64(const AdamWRange<double>& a, Range range) {
  update(a, range);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tern::trainer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern::trainer {

HWY_EXPORT(update_f32);
HWY_EXPORT(update_f64);

namespace {

// Elements; below this a second thread costs more than it brings.
constexpr int64_t kGrain = 16384;

void dispatch(const AdamWRange<float>& a, Range range) {
  HWY_DYNAMIC_DISPATCH(update_f32)(a, range);
}
void dispatch(const AdamWRange<double>& a, Range range) {
  HWY_DYNAMIC_DISPATCH(update_f64)(a, range);
}

}  // namespace

template <class T>
// NOLINTNEXTLINE(readability-function-size): the operands of the formula
void adamw_step(Team& team, const AdamW& adamw, std::span<T> params, std::span<const T> grads, std::span<T> m,
                std::span<T> v) {
  TERN_CHECK(adamw.step >= 1);
  TERN_CHECK(params.size() == grads.size() && params.size() == m.size() && params.size() == v.size());
  const auto step = static_cast<double>(adamw.step);
  const AdamWRange<T> args{
      .grad_scale = static_cast<T>(adamw.grad_scale),
      .beta1 = static_cast<T>(adamw.beta1),
      .one_minus_beta1 = static_cast<T>(1.0 - adamw.beta1),
      .beta2 = static_cast<T>(adamw.beta2),
      .one_minus_beta2 = static_cast<T>(1.0 - adamw.beta2),
      .keep = static_cast<T>(1.0 - adamw.lr * adamw.weight_decay),
      .rate = static_cast<T>(adamw.lr / (1.0 - std::pow(adamw.beta1, step))),
      .inverse_v = static_cast<T>(1.0 / (1.0 - std::pow(adamw.beta2, step))),
      .eps = static_cast<T>(adamw.eps),
      .params = params.data(),
      .grads = grads.data(),
      .m = m.data(),
      .v = v.data(),
  };
  team.for_range(static_cast<int64_t>(params.size()), kGrain, [&](Range range) { dispatch(args, range); });
}

template void adamw_step(Team&, const AdamW&, std::span<float>, std::span<const float>, std::span<float>,
                         std::span<float>);
template void adamw_step(Team&, const AdamW&, std::span<double>, std::span<const double>, std::span<double>,
                         std::span<double>);

}  // namespace tern::trainer
#endif
