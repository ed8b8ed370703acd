// q5: 5.5 bits per element. Format and error: kernels/q5.h.
#include "kernels/q5.h"

#include "runtime/codec/block_row.h"

namespace tern {
namespace {

constexpr BlockKernels kKernels = {Q5::kShape, q5_encode, q5_decode};

const BlockKernels& kernels_of(const CodecSpec& /*spec*/) {
  return kKernels;
}

double max_error(const CodecSpec& spec, double absmax) {
  return half_step(absmax, Q5::kMost) * (spec.rounding == kStochastic ? 2 : 1);
}

}  // namespace

CodecInfo q5_codec() {
  CodecInfo row = BlockRow<kernels_of>::info(CodecId::kQ5, "q5");
  row.residual = ResidualUse::kOptional;
  row.options = kRoundingOptions;
  row.max_error = max_error;
  row.loss_gap = {0.05, 0.05};
  row.speed = {1 / 10e9, 1 / 21e9};
  return row;
}

}  // namespace tern
