#include "trainer/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trainer/kernels/cross_entropy.cpp"
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
HWY_INLINE T largest_of(const hn::ScalableTag<T> d, const T* x, int64_t n) {
  const auto lowest = hn::Set(d, std::numeric_limits<T>::lowest());
  auto largest = lowest;
  for_vectors(d, n, [&](int64_t i, auto lanes) HWY_ATTR {
    largest = hn::Max(largest, lanes.valid_or(d, lanes.load(d, x + i), lowest));
  });
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

template <class T>
double one_row(const hn::ScalableTag<T> d, int64_t vocab, int32_t target, T* logits) {
  const T top = largest_of(d, logits, vocab);
  const double target_logit = logits[target];
  const auto shift = hn::Set(d, top);
  auto sum = hn::Zero(d);
  for_vectors(d, vocab, [&](int64_t i, auto lanes) HWY_ATTR {
    const auto x = lanes.load(d, logits + i);
    const auto e = hn::Exp(d, hn::Sub(x, shift));
    lanes.store(d, e, logits + i);
    // x - x is zero, or NaN when x is not finite: exp() alone would turn a NaN into zero and hide it
    sum = hn::Add(sum, lanes.valid_or(d, hn::Add(e, hn::Sub(x, x)), hn::Zero(d)));
  });
  const T total = hn::GetLane(hn::SumOfLanes(d, sum));
  const auto inverse = hn::Set(d, T{1} / total);
  for_vectors(d, vocab, [&](int64_t i, auto lanes) HWY_ATTR {
    lanes.store(d, hn::Mul(lanes.load(d, logits + i), inverse), logits + i);
  });
  logits[target] -= T{1};
  return std::log(static_cast<double>(total)) + static_cast<double>(top) - target_logit;
}

template <class T>
void all_rows(const CrossEntropy<T>& a) {
  const hn::ScalableTag<T> d;
  for (int64_t row = 0; row < a.logits.rows; ++row) {
    T* logits = a.logits.row(row);
    if (a.targets[row] < 0) {
      std::fill_n(logits, a.logits.width, T{0});
      a.losses[row] = 0.0;
    } else {
      a.losses[row] = one_row(d, a.logits.width, a.targets[row], logits);
    }
  }
}

TERN_BOTH_FLOATS(all_rows, CrossEntropy)

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tern::trainer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern::trainer {

TERN_DISPATCH_BOTH_FLOATS(cross_entropy, all_rows, CrossEntropy)

}  // namespace tern::trainer
#endif
