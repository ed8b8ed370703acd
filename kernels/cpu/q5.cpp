#include "kernels/q5.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/q5.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/block_codec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {

BlockCounts q5_encode_run(const BlockInput& run, BlockPlanes out) {
  return encode_run<Q5>(run, out);
}
void q5_decode_run(BlockView in, std::span<float> out, Decode how) {
  decode_run<Q5>(in, out, how);
}

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern {

HWY_EXPORT(q5_encode_run);
HWY_EXPORT(q5_decode_run);

BlockCounts q5_encode(const BlockInput& run, BlockPlanes out) {
  return HWY_DYNAMIC_DISPATCH(q5_encode_run)(run, out);
}
void q5_decode(BlockView in, std::span<float> out, Decode how) {
  HWY_DYNAMIC_DISPATCH(q5_decode_run)(in, out, how);
}

}  // namespace tern
#endif  // HWY_ONCE
