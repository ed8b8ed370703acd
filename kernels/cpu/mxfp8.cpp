#include "kernels/mxfp8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/mxfp8.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/block_codec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {

BlockCounts mxfp8_encode_run(const BlockInput& run, BlockPlanes out) {
  return encode_run<Mxfp8>(run, out);
}
void mxfp8_decode_run(BlockView in, std::span<float> out, Decode how) {
  decode_run<Mxfp8>(in, out, how);
}

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern {

HWY_EXPORT(mxfp8_encode_run);
HWY_EXPORT(mxfp8_decode_run);

BlockCounts mxfp8_encode(const BlockInput& run, BlockPlanes out) {
  return HWY_DYNAMIC_DISPATCH(mxfp8_encode_run)(run, out);
}
void mxfp8_decode(BlockView in, std::span<float> out, Decode how) {
  HWY_DYNAMIC_DISPATCH(mxfp8_decode_run)(in, out, how);
}

}  // namespace tern
#endif  // HWY_ONCE
