#include "kernels/convert.h"

#include <algorithm>

#include "kernels/cpu/prefetch.h"
#include "runtime/base/status.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/convert.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/short_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {

template <class From, class To>
HWY_INLINE size_t convert_vectors(const From* in, To* out, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t n_lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes) store_elements(load_elements(d, in + i), d, out + i);
  return i;
}

void to_bfloat16s(const float* in, Bfloat16* out, size_t n) {
  for (size_t i = convert_vectors(in, out, n); i < n; ++i) out[i] = to_bfloat16(in[i]);
}
void to_float16s(const float* in, Float16* out, size_t n) {
  for (size_t i = convert_vectors(in, out, n); i < n; ++i) out[i] = to_float16(in[i]);
}
void from_bfloat16s(const Bfloat16* in, float* out, size_t n) {
  for (size_t i = convert_vectors(in, out, n); i < n; ++i) out[i] = to_float(in[i]);
}
void from_float16s(const Float16* in, float* out, size_t n) {
  for (size_t i = convert_vectors(in, out, n); i < n; ++i) out[i] = to_float(in[i]);
}

uint32_t max_magnitude(const float* in, size_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;  // magnitudes are non-negative: signed order is theirs too
  const size_t n_lanes = hn::Lanes(d);
  const auto magnitude = [&](size_t i) HWY_ATTR { return hn::BitCast(di, hn::Abs(hn::LoadU(d, in + i))); };
  auto max0 = hn::Zero(di);
  auto max1 = hn::Zero(di);
  size_t i = 0;
  for (; i + 2 * n_lanes <= n; i += 2 * n_lanes) {
    prefetch_ahead(in + i);
    prefetch_ahead(in + i + n_lanes);
    max0 = hn::Max(max0, magnitude(i));
    max1 = hn::Max(max1, magnitude(i + n_lanes));
  }
  auto max = static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(di, hn::Max(max0, max1))));
  for (; i < n; ++i) max = std::max(max, std::bit_cast<uint32_t>(in[i]) & 0x7FFFFFFF);
  return max;
}

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern {

HWY_EXPORT(to_bfloat16s);
HWY_EXPORT(to_float16s);
HWY_EXPORT(from_bfloat16s);
HWY_EXPORT(from_float16s);
HWY_EXPORT(max_magnitude);

void convert(std::span<const float> in, std::span<Bfloat16> out) {
  TERN_CHECK(in.size() == out.size());
  HWY_DYNAMIC_DISPATCH(to_bfloat16s)(in.data(), out.data(), in.size());
}
void convert(std::span<const float> in, std::span<Float16> out) {
  TERN_CHECK(in.size() == out.size());
  HWY_DYNAMIC_DISPATCH(to_float16s)(in.data(), out.data(), in.size());
}
void convert(std::span<const Bfloat16> in, std::span<float> out) {
  TERN_CHECK(in.size() == out.size());
  HWY_DYNAMIC_DISPATCH(from_bfloat16s)(in.data(), out.data(), in.size());
}
void convert(std::span<const Float16> in, std::span<float> out) {
  TERN_CHECK(in.size() == out.size());
  HWY_DYNAMIC_DISPATCH(from_float16s)(in.data(), out.data(), in.size());
}

uint32_t max_magnitude_bits(std::span<const float> in) {
  return HWY_DYNAMIC_DISPATCH(max_magnitude)(in.data(), in.size());
}

}  // namespace tern
#endif  // HWY_ONCE
