#include "kernels/bf16.h"

#include "kernels/cpu/prefetch.h"
#include "kernels/scalar.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/bf16.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/short_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR  // Highway's scalar loads need aligned addresses
bool encode_bf16(std::span<const float> in, std::byte* out) {
  return scalar::bf16_encode(in, out);
}
void decode_bf16(const std::byte* in, std::span<float> out) {
  scalar::bf16_decode(in, out);
}
void add_bf16(const std::byte* in, std::span<float> out) {
  scalar::bf16_decode_accumulate(in, out);
}
#else

bool encode_bf16(std::span<const float> in, std::byte* out) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const size_t n_lanes = hn::Lanes(d);
  auto largest = hn::Zero(di);
  size_t i = 0;
  for (; i + n_lanes <= in.size(); i += n_lanes) {
    prefetch_ahead(in.data() + i);
    const auto v = hn::LoadU(d, in.data() + i);
    largest = hn::Max(largest, hn::BitCast(di, hn::Abs(v)));  // as integers, so that NaN is the largest
    store_elements(v, d, reinterpret_cast<Bfloat16*>(out + i * sizeof(Bfloat16)));
  }
  const auto bits = static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(di, largest)));
  const bool tail = scalar::bf16_encode(in.subspan(i), out + i * sizeof(Bfloat16));
  return bits >= kBf16OverflowBits || tail;
}

template <bool kAccumulate>
HWY_INLINE void decode(const std::byte* in, std::span<float> out) {
  const hn::ScalableTag<float> d;
  const size_t n_lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + n_lanes <= out.size(); i += n_lanes) {
    if constexpr (kAccumulate) prefetch_ahead(out.data() + i);
    const auto v = load_elements(d, reinterpret_cast<const Bfloat16*>(in + i * sizeof(Bfloat16)));
    hn::StoreU(kAccumulate ? hn::Add(hn::LoadU(d, out.data() + i), v) : v, d, out.data() + i);
  }
  const auto decode_tail = kAccumulate ? scalar::bf16_decode_accumulate : scalar::bf16_decode;
  decode_tail(in + i * sizeof(Bfloat16), out.subspan(i));
}

void decode_bf16(const std::byte* in, std::span<float> out) {
  decode<false>(in, out);
}
void add_bf16(const std::byte* in, std::span<float> out) {
  decode<true>(in, out);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern {

HWY_EXPORT(encode_bf16);
HWY_EXPORT(decode_bf16);
HWY_EXPORT(add_bf16);

bool bf16_encode(std::span<const float> in, std::byte* out) {
  return HWY_DYNAMIC_DISPATCH(encode_bf16)(in, out);
}
void bf16_decode(const std::byte* in, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(decode_bf16)(in, out);
}
void bf16_decode_accumulate(const std::byte* in, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(add_bf16)(in, out);
}

}  // namespace tern
#endif  // HWY_ONCE
