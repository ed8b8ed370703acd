// sign1: 1.023 bits per element, the sign and a block's mean magnitude; only with a residual. Format:
// kernels/sign1.h.
#include "kernels/sign1.h"

#include "runtime/codec/block_row.h"

namespace tern {
namespace {

constexpr BlockKernels kKernels = {kSign1Shape, sign1_encode, sign1_decode};

const BlockKernels& kernels_of(const CodecSpec& /*spec*/) {
  return kKernels;
}

double max_error(const CodecSpec& /*spec*/, double absmax) {
  return absmax * (1 + 0x1p-8);  // an element that is zero, or the largest one of a block of zeros
}

}  // namespace

CodecInfo sign1_codec() {
  CodecInfo row = BlockRow<kernels_of>::info(CodecId::kSign1, "sign1");
  row.residual = ResidualUse::kMandatory;
  row.max_error = max_error;
  row.loss_gap = {LossGap::kUnbounded, 1};
  row.speed = {1 / 7e9, 1 / 24e9};
  return row;
}

}  // namespace tern
