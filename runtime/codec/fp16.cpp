// fp16: 16.125 bits per element, halves under a block scale, never a bare cast. Format and error:
// kernels/fp16.h.
#include "kernels/fp16.h"

#include "runtime/codec/block_row.h"

namespace tern {
namespace {

constexpr BlockKernels kKernels = {ScaledFp16::kShape, fp16_encode, fp16_decode};

const BlockKernels& kernels_of(const CodecSpec& /*spec*/) {
  return kKernels;
}

// Half a unit in the last place of 11 bits of precision.
double max_error(const CodecSpec& /*spec*/, double absmax) {
  return absmax * 0x1p-11;
}

}  // namespace

CodecInfo fp16_codec() {
  CodecInfo row = BlockRow<kernels_of>::info(CodecId::kFp16, "fp16");
  row.max_error = max_error;
  row.speed = {1 / 12e9, 1 / 17e9};
  return row;
}

}  // namespace tern
