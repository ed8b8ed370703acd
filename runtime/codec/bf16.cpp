// bf16: every element rounded to the nearest bf16. The range of fp32, 8 bits of precision, no scale.
#include "kernels/bf16.h"

#include "runtime/base/dtype.h"
#include "runtime/codec/message.h"
#include "runtime/codec/runs.h"

namespace tern {
namespace {

double bits_per_element(const CodecSpec&, size_t /*elt*/) {
  return 16;
}

// Half a unit in the last place of 8 bits of precision.
double max_error(const CodecSpec&, double absmax) {
  return absmax * 0x1p-8;
}

size_t plane_size(size_t n) {
  return n * sizeof(Bfloat16);
}

size_t wire_bytes(const CodecSpec&, Dtype, size_t n) {
  return sizeof(WireHeader) + plane_bytes(plane_size(n));
}

EncodeStats encode(const EncodeArgs& args) {
  TERN_CHECK(args.residual == nullptr);
  std::byte* plane = PlaneWriter(args.wire).next(plane_size(args.in.n));
  EncodeStats stats;
  each_run(args, [&](const EncodeRun& run) {
    stats.non_finite |= bf16_encode(run.in, plane + plane_size(run.begin));
  });
  write_header(args, stats);
  return stats;
}

void decode_run(const DecodeRun& run) {
  const std::byte* plane = PlaneReader(run.wire).next(plane_size(run.n)) + plane_size(run.begin);
  (run.how == Decode::kSet ? bf16_decode : bf16_decode_accumulate)(plane, run.out);
}

}  // namespace

CodecInfo bf16_codec() {
  return {.id = CodecId::kBf16,
          .name = "bf16",
          .residual = ResidualUse::kNone,
          .block = 1,
          .options = {},
          .bits_per_element = bits_per_element,
          .max_error = max_error,
          .wire_bytes = wire_bytes,
          .encode = encode,
          .decode_run = decode_run,
          .speed = {1 / 11e9, 1 / 17e9}};
}

}  // namespace tern
