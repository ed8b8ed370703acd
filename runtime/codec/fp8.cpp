// fp8: 8.125 bits per element, E4M3 or E5M2 under a block scale. Format and error: kernels/fp8.h.
#include "kernels/fp8.h"

#include "runtime/codec/block_row.h"

namespace tern {
namespace {

enum Format : int { kE4m3, kE5m2 };
constexpr int kFormats[] = {kE4m3, kE5m2};
constexpr std::string_view kFormatNames[] = {"e4m3", "e5m2"};
constexpr CodecOption kOptions[] = {
    {.name = "format", .member = &CodecSpec::format, .allowed = kFormats, .words = kFormatNames}};

constexpr BlockKernels kKernels[] = {{ScaledFp8<Float8E4m3>::kShape, fp8_e4m3_encode, fp8_e4m3_decode},
                                     {ScaledFp8<Float8E5m2>::kShape, fp8_e5m2_encode, fp8_e5m2_decode}};

const BlockKernels& kernels_of(const CodecSpec& spec) {
  return kKernels[spec.format];
}

// Half a unit in the last place of the largest number: 32 of 448, 8192 of 57344.
double max_error(const CodecSpec& spec, double absmax) {
  return half_step(absmax, spec.format == kE4m3 ? 448.0 / 32 : 57344.0 / 8192);
}

}  // namespace

CodecInfo fp8_codec() {
  CodecInfo row = BlockRow<kernels_of>::info(CodecId::kFp8, "fp8");
  row.options = kOptions;
  row.max_error = max_error;
  row.loss_gap = {0.05, 0.05};
  row.speed = {1 / 9e9, 1 / 18e9};
  return row;
}

}  // namespace tern
