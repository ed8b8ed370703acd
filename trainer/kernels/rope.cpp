#include "trainer/kernels/rope.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trainer/kernels/rope.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "trainer/kernels/both_floats.h"
#include "trainer/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tern::trainer {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void turn(const Rotation<T>& r) {
  const hn::ScalableTag<T> d;
  const int64_t half = r.head_dim / 2;
  const auto sign = hn::Set(d, static_cast<T>(r.direction < 0 ? -1 : 1));
  for (int64_t row = 0; row < r.x.rows; ++row) {
    const int64_t position = (r.first_row + row) % r.tokens;
    const T* cosines = r.cosines + position * half;
    const T* sines = r.sines + position * half;
    for (int64_t first = 0; first < r.x.width; first += r.head_dim) {
      T* low = r.x.row(row) + first;
      T* high = low + half;
      for_vectors(d, half, [&](int64_t i, auto lanes) HWY_ATTR {
        const auto c = lanes.load(d, cosines + i);
        const auto s = hn::Mul(lanes.load(d, sines + i), sign);
        const auto a = lanes.load(d, low + i);
        const auto b = lanes.load(d, high + i);
        lanes.store(d, hn::NegMulAdd(b, s, hn::Mul(a, c)), low + i);
        lanes.store(d, hn::MulAdd(a, s, hn::Mul(b, c)), high + i);
      });
    }
  }
}

TERN_BOTH_FLOATS(turn, Rotation)

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tern::trainer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern::trainer {

TERN_DISPATCH_BOTH_FLOATS(rotate, turn, Rotation)

}  // namespace tern::trainer
#endif
