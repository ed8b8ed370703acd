#include "trainer/kernels/rope.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trainer/kernels/rope.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
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

void turn_f32(const Rotation<float>& r) {
  turn(r);
}
void turn_f64(const Rotation<double>& r) {
  turn(r);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tern::trainer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern::trainer {

HWY_EXPORT(turn_f32);
HWY_EXPORT(turn_f64);

void rotate(const Rotation<float>& rotation) {
  HWY_DYNAMIC_DISPATCH(turn_f32)(rotation);
}
void rotate(const Rotation<double>& rotation) {
  HWY_DYNAMIC_DISPATCH(turn_f64)(rotation);
}

}  // namespace tern::trainer
#endif
