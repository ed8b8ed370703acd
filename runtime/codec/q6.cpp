// q6: 6.5 bits per element. Format and error: kernels/q6.h.
#include "kernels/q6.h"

#include "runtime/codec/block_row.h"

namespace tern {
namespace {

constexpr BlockKernels kKernels = {Q6::kShape, q6_encode, q6_decode};

const BlockKernels& kernels_of(const CodecSpec& /*spec*/) {
  return kKernels;
}

double max_error(const CodecSpec& spec, double absmax) {
  return half_step(absmax, Q6::kMost) * (spec.rounding == kStochastic ? 2 : 1);
}

}  // namespace

CodecInfo q6_codec() {
  CodecInfo row = BlockRow<kernels_of>::info(CodecId::kQ6, "q6");
  row.residual = ResidualUse::kOptional;
  row.options = kRoundingOptions;
  row.max_error = max_error;
  row.loss_gap = {0.05, 0.05};
  row.speed = {1 / 8e9, 1 / 21e9};
  return row;
}

}  // namespace tern
