// mxfp8: 8.25 bits per element, for exchange with others that speak OCP MX. Format and error:
// kernels/mxfp8.h.
#include "kernels/mxfp8.h"

#include "runtime/codec/block_row.h"

namespace tern {
namespace {

constexpr BlockKernels kKernels = {Mxfp8::kShape, mxfp8_encode, mxfp8_decode};

const BlockKernels& kernels_of(const CodecSpec& /*spec*/) {
  return kKernels;
}

// A value just below 512 steps is clamped to 448.
double max_error(const CodecSpec& /*spec*/, double absmax) {
  return absmax / 8;
}

}  // namespace

CodecInfo mxfp8_codec() {
  CodecInfo row = BlockRow<kernels_of>::info(CodecId::kMxfp8, "mxfp8");
  row.max_error = max_error;
  row.loss_gap = {0.05, 0.05};
  row.speed = {1 / 7e9, 1 / 18e9};
  return row;
}

}  // namespace tern
