// q8: 8.125 bits per element, the default when anything is compressed. Format and error: kernels/q8.h.
#include "kernels/q8.h"

#include "runtime/codec/block_row.h"

namespace tern {
namespace {

constexpr BlockKernels kKernels = {Q8::kShape, q8_encode, q8_decode};

const BlockKernels& kernels_of(const CodecSpec& /*spec*/) {
  return kKernels;
}

double max_error(const CodecSpec& spec, double absmax) {
  return half_step(absmax, Q8::kMost) * (spec.rounding == kStochastic ? 2 : 1);
}

}  // namespace

CodecInfo q8_codec() {
  CodecInfo row = BlockRow<kernels_of>::info(CodecId::kQ8, "q8");
  row.residual = ResidualUse::kOptional;
  row.options = kRoundingOptions;
  row.max_error = max_error;
  row.speed = {1 / 11e9, 1 / 18e9};
  return row;
}

}  // namespace tern
