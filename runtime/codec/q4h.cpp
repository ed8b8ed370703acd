// q4h: 4.125 bits per element, four-bit integers of rotated values. Format and error: kernels/q4h.h.
#include "kernels/q4h.h"

#include "runtime/codec/block_row.h"

namespace tern {
namespace {

constexpr BlockKernels kKernels = {Q4h::kShape, q4h_encode, nullptr, q4h_decode};

const BlockKernels& kernels_of(const CodecSpec& /*spec*/) {
  return kKernels;
}

// Of rotated values half a step, or a step; each element is the sum of 32 of them. The error of a whole block
// is far below that: 1.4 % of its energy.
double max_error(const CodecSpec& spec, double absmax) {
  return kRotation * half_step(absmax, Q4h::kMost) * (spec.rounding == kStochastic ? 2 : 1) * (1 + 0x1p-15);
}

}  // namespace

CodecInfo q4h_codec() {
  CodecInfo row = BlockRow<kernels_of>::info(CodecId::kQ4h, "q4h");
  row.residual = ResidualUse::kOptional;
  row.options = kRoundingOptions;
  row.max_error = max_error;
  row.loss_gap = {LossGap::kUnbounded, 0.3};
  row.speed = {1 / 5e9, 1 / 14e9};
  return row;
}

}  // namespace tern
