// q8: 8.125 bits per element, the default when anything is compressed. Format and error: kernels/q8.h.
#include "kernels/q8.h"

#include "runtime/base/dtype.h"
#include "runtime/codec/message.h"

namespace tern {
namespace {

double bits_per_element(const CodecSpec&) {
  return 8.0 + 16.0 / kQ8Block;
}

size_t scale_bytes(size_t n) {
  return q8_blocks(n) * sizeof(Bfloat16);
}

double max_error(const CodecSpec& /*spec*/, double absmax) {
  return absmax / 254 * (1 + 0x1p-7) * (1 + 0x1p-15);  // half a step; the scale is rounded up to bf16
}

size_t wire_bytes(const CodecSpec&, size_t n) {
  return sizeof(WireHeader) + plane_bytes(scale_bytes(n)) + plane_bytes(n);
}

EncodeStats encode(const EncodeArgs& args) {
  PlaneWriter planes(args.wire);
  std::byte* scales = planes.next(scale_bytes(args.in.size()));
  std::byte* codes = planes.next(args.in.size());
  const size_t n_non_finite = q8_encode(args.in, args.residual, {.scales = scales, .codes = codes});
  const EncodeStats stats{.non_finite = n_non_finite > 0};
  write_header(args, stats);
  return stats;
}

Q8View view(const std::byte* wire, size_t n) {
  PlaneReader planes(wire);
  const std::byte* scales = planes.next(scale_bytes(n));
  return {.scales = scales, .codes = planes.next(n)};
}

void decode(const CodecSpec&, const std::byte* wire, std::span<float> out) {
  q8_decode(view(wire, out.size()), out);
}

void decode_accumulate(const CodecSpec&, const std::byte* wire, std::span<float> out) {
  q8_decode_accumulate(view(wire, out.size()), out);
}

}  // namespace

CodecInfo q8_codec() {
  return {.id = CodecId::kQ8,
          .name = "q8",
          .residual = ResidualUse::kOptional,
          .block = kQ8Block,
          .options = {},
          .bits_per_element = bits_per_element,
          .max_error = max_error,
          .wire_bytes = wire_bytes,
          .encode = encode,
          .decode = decode,
          .decode_accumulate = decode_accumulate};
}

}  // namespace tern
