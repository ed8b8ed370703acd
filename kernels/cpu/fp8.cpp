#include "kernels/fp8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/fp8.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/block_codec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {

BlockCounts fp8_e4m3_encode_run(const BlockInput& run, BlockPlanes out) {
  return encode_run<ScaledFp8<Float8E4m3>>(run, out);
}
void fp8_e4m3_decode_run(BlockView in, std::span<float> out, Decode how) {
  decode_run<ScaledFp8<Float8E4m3>>(in, out, how);
}
BlockCounts fp8_e5m2_encode_run(const BlockInput& run, BlockPlanes out) {
  return encode_run<ScaledFp8<Float8E5m2>>(run, out);
}
void fp8_e5m2_decode_run(BlockView in, std::span<float> out, Decode how) {
  decode_run<ScaledFp8<Float8E5m2>>(in, out, how);
}

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern {

HWY_EXPORT(fp8_e4m3_encode_run);
HWY_EXPORT(fp8_e4m3_decode_run);
HWY_EXPORT(fp8_e5m2_encode_run);
HWY_EXPORT(fp8_e5m2_decode_run);

BlockCounts fp8_e4m3_encode(const BlockInput& run, BlockPlanes out) {
  return HWY_DYNAMIC_DISPATCH(fp8_e4m3_encode_run)(run, out);
}
void fp8_e4m3_decode(BlockView in, std::span<float> out, Decode how) {
  HWY_DYNAMIC_DISPATCH(fp8_e4m3_decode_run)(in, out, how);
}
BlockCounts fp8_e5m2_encode(const BlockInput& run, BlockPlanes out) {
  return HWY_DYNAMIC_DISPATCH(fp8_e5m2_encode_run)(run, out);
}
void fp8_e5m2_decode(BlockView in, std::span<float> out, Decode how) {
  HWY_DYNAMIC_DISPATCH(fp8_e5m2_decode_run)(in, out, how);
}

}  // namespace tern
#endif  // HWY_ONCE
