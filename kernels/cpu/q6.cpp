#include "kernels/q6.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/q6.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/block_codec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {

BlockCounts q6_encode_run(const BlockInput& run, BlockPlanes out) {
  return encode_run<Q6>(run, out);
}
void q6_decode_run(BlockView in, std::span<float> out, Decode how) {
  decode_run<Q6>(in, out, how);
}

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern {

HWY_EXPORT(q6_encode_run);
HWY_EXPORT(q6_decode_run);

BlockCounts q6_encode(const BlockInput& run, BlockPlanes out) {
  return HWY_DYNAMIC_DISPATCH(q6_encode_run)(run, out);
}
void q6_decode(BlockView in, std::span<float> out, Decode how) {
  HWY_DYNAMIC_DISPATCH(q6_decode_run)(in, out, how);
}

}  // namespace tern
#endif  // HWY_ONCE
