#include "kernels/copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <hwy/cache_control.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/copy.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void copy_past_cache(uint8_t* dst, const uint8_t* src, size_t n_bytes) {
  const hn::ScalableTag<uint8_t> d;
  const size_t n_lanes = hn::Lanes(d);
  constexpr size_t kLineBytes = 64;
  const size_t head =
      std::min(n_bytes, (kLineBytes - reinterpret_cast<uintptr_t>(dst) % kLineBytes) % kLineBytes);
  std::memcpy(dst, src, head);
  size_t i = head;
  for (; i + 4 * n_lanes <= n_bytes; i += 4 * n_lanes) {
    const auto v0 = hn::LoadU(d, src + i);
    const auto v1 = hn::LoadU(d, src + i + n_lanes);
    const auto v2 = hn::LoadU(d, src + i + 2 * n_lanes);
    const auto v3 = hn::LoadU(d, src + i + 3 * n_lanes);
    hn::Stream(v0, d, dst + i);
    hn::Stream(v1, d, dst + i + n_lanes);
    hn::Stream(v2, d, dst + i + 2 * n_lanes);
    hn::Stream(v3, d, dst + i + 3 * n_lanes);
  }
  hwy::FlushStream();
  std::memcpy(dst + i, src + i, n_bytes - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern {

HWY_EXPORT(copy_past_cache);

void copy(void* dst, const void* src, size_t n_bytes, CopyOptions options) {
  if (dst == src || n_bytes == 0) return;
  if (!options.stream) {
    std::memcpy(dst, src, n_bytes);
    return;
  }
  HWY_DYNAMIC_DISPATCH(copy_past_cache)
  (static_cast<uint8_t*>(dst), static_cast<const uint8_t*>(src), n_bytes);
}

}  // namespace tern
#endif  // HWY_ONCE
