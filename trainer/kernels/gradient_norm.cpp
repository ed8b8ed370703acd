#include "trainer/kernels/gradient_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trainer/kernels/gradient_norm.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "trainer/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tern::trainer {
namespace HWY_NAMESPACE {
namespace {

/// The elements at `from`, as doubles.
template <class Lanes>
HWY_INLINE auto load_as_double(hn::ScalableTag<double> d, const Lanes& lanes, const double* from) {
  return lanes.load(d, from);
}
template <class Lanes>
HWY_INLINE auto load_as_double(hn::ScalableTag<double> d, const Lanes& lanes, const float* from) {
  return hn::PromoteTo(d, lanes.load(hn::Rebind<float, hn::ScalableTag<double>>(), from));
}

template <class T>
double squares(const T* x, int64_t n) {
  const hn::ScalableTag<double> d;
  auto sum = hn::Zero(d);
  for_vectors(d, n, [&](int64_t i, auto lanes) HWY_ATTR {
    const auto v = load_as_double(d, lanes, x + i);
    sum = hn::MulAdd(v, v, sum);
  });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

/// Zero when all are finite, NaN otherwise.
template <class T>
T differences(const T* x, int64_t n) {
  const hn::ScalableTag<T> d;
  auto sum = hn::Zero(d);
  for_vectors(d, n, [&](int64_t i, auto lanes) HWY_ATTR {
    const auto v = lanes.load(d, x + i);
    sum = hn::Add(sum, hn::Sub(v, v));
  });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <class T>
void multiply_by(T* x, int64_t n, T factor) {
  const hn::ScalableTag<T> d;
  const auto by = hn::Set(d, factor);
  for_vectors(d, n, [&](int64_t i, auto lanes) HWY_ATTR {
    lanes.store(d, hn::Mul(lanes.load(d, x + i), by), x + i);
  });
}

double squares_f32(const float* x, int64_t n) {
  return squares(x, n);
}
double squares_f64(const double* x, int64_t n) {
  return squares(x, n);
}
float differences_f32(const float* x, int64_t n) {
  return differences(x, n);
}
double differences_f64(const double* x, int64_t n) {
  return differences(x, n);
}
void multiply_by_f32(float* x, int64_t n, float factor) {
  multiply_by(x, n, factor);
}
void multiply_by_f64(double* x, int64_t n, double factor) {
  multiply_by(x, n, factor);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tern::trainer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern::trainer {

HWY_EXPORT(squares_f32);
HWY_EXPORT(squares_f64);
HWY_EXPORT(differences_f32);
HWY_EXPORT(differences_f64);
HWY_EXPORT(multiply_by_f32);
HWY_EXPORT(multiply_by_f64);

namespace {

double block_squares(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(squares_f32)(x, n);
}
double block_squares(const double* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(squares_f64)(x, n);
}
float block_differences(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(differences_f32)(x, n);
}
double block_differences(const double* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(differences_f64)(x, n);
}
void block_scale(float* x, int64_t n, float by) {
  HWY_DYNAMIC_DISPATCH(multiply_by_f32)(x, n, by);
}
void block_scale(double* x, int64_t n, double by) {
  HWY_DYNAMIC_DISPATCH(multiply_by_f64)(x, n, by);
}

}  // namespace

template <class T>
double sum_of_squares(Team& team, std::span<const T> x) {
  const auto n = static_cast<int64_t>(x.size());
  std::vector<double> partial(static_cast<size_t>((n + kNormBlock - 1) / kNormBlock));
  team.for_range(static_cast<int64_t>(partial.size()), 1, [&](Range blocks) {
    for (int64_t b = blocks.begin; b < blocks.end; ++b)
      partial[static_cast<size_t>(b)] =
          block_squares(x.data() + b * kNormBlock, std::min(kNormBlock, n - b * kNormBlock));
  });
  double sum = 0;
  for (const double p : partial) sum += p;
  return sum;
}

template <class T>
int64_t first_non_finite(std::span<const T> x) {
  const auto n = static_cast<int64_t>(x.size());
  for (int64_t begin = 0; begin < n; begin += kNormBlock) {
    const int64_t size = std::min(kNormBlock, n - begin);
    if (std::isfinite(block_differences(x.data() + begin, size))) continue;
    const auto block = x.subspan(static_cast<size_t>(begin), static_cast<size_t>(size));
    const auto found =
        std::find_if(block.begin(), block.end(), [](T value) { return !std::isfinite(value); });
    return begin + (found - block.begin());
  }
  return -1;
}

template <class T>
void scale(Team& team, std::span<T> x, T factor) {
  team.for_range(static_cast<int64_t>(x.size()), kNormBlock,
                 [&](Range range) { block_scale(x.data() + range.begin, range.size(), factor); });
}

template double sum_of_squares(Team&, std::span<const float>);
template double sum_of_squares(Team&, std::span<const double>);
template int64_t first_non_finite(std::span<const float>);
template int64_t first_non_finite(std::span<const double>);
template void scale(Team&, std::span<float>, float);
template void scale(Team&, std::span<double>, double);

}  // namespace tern::trainer
#endif
