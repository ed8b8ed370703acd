#include "kernels/q8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/q8.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/block_codec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {

BlockCounts q8_encode_run(const BlockInput& run, BlockPlanes out) {
  return encode_run<Q8>(run, out);
}
void q8_decode_run(BlockView in, std::span<float> out, Decode how) {
  decode_run<Q8>(in, out, how);
}

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern {

HWY_EXPORT(q8_encode_run);
HWY_EXPORT(q8_decode_run);

BlockCounts q8_encode(const BlockInput& run, BlockPlanes out) {
  return HWY_DYNAMIC_DISPATCH(q8_encode_run)(run, out);
}
void q8_decode(BlockView in, std::span<float> out, Decode how) {
  HWY_DYNAMIC_DISPATCH(q8_decode_run)(in, out, how);
}

}  // namespace tern
#endif  // HWY_ONCE
