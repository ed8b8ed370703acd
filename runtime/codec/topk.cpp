// topk: k of every 4096 elements, 12 + 8 bits each and 16 per block; only with a residual. Format:
// kernels/topk.h.
#include "kernels/topk.h"

#include "runtime/base/dtype.h"
#include "runtime/codec/message.h"

namespace tern {
namespace {

constexpr CodecOption kOptions[] = {{.name = "k", .member = &CodecSpec::k, .allowed = kTopkChoices}};

double bits_per_element(const CodecSpec& spec) {
  return (spec.k * 20.0 + 16.0) / kTopkBlock;
}

size_t scale_bytes(size_t n) {
  return topk_blocks(n) * sizeof(Bfloat16);
}

double max_error(const CodecSpec& /*spec*/, double absmax) {
  return absmax;  // that of an element left out
}

size_t wire_bytes(const CodecSpec& spec, size_t n) {
  return sizeof(WireHeader) + plane_bytes(topk_index_bytes(n, spec.k)) +
         plane_bytes(topk_entries(n, spec.k)) + plane_bytes(scale_bytes(n));
}

EncodeStats encode(const EncodeArgs& args) {
  const size_t n = args.in.size();
  PlaneWriter planes(args.wire);
  std::byte* indices = planes.next(topk_index_bytes(n, args.spec.k));
  std::byte* values = planes.next(topk_entries(n, args.spec.k));
  std::byte* scales = planes.next(scale_bytes(n));
  const size_t n_non_finite = topk_encode(args.in, args.residual, args.spec.k,
                                          {.indices = indices, .values = values, .scales = scales});
  const EncodeStats stats{.non_finite = n_non_finite > 0};
  write_header(args, stats);
  return stats;
}

TopkView view(const CodecSpec& spec, const std::byte* wire, size_t n) {
  PlaneReader planes(wire);
  const std::byte* indices = planes.next(topk_index_bytes(n, spec.k));
  const std::byte* values = planes.next(topk_entries(n, spec.k));
  return {.indices = indices, .values = values, .scales = planes.next(scale_bytes(n))};
}

void decode(const CodecSpec& spec, const std::byte* wire, std::span<float> out) {
  topk_decode(view(spec, wire, out.size()), spec.k, out);
}

void decode_accumulate(const CodecSpec& spec, const std::byte* wire, std::span<float> out) {
  topk_decode_accumulate(view(spec, wire, out.size()), spec.k, out);
}

}  // namespace

CodecInfo topk_codec() {
  return {.id = CodecId::kTopk,
          .name = "topk",
          .residual = ResidualUse::kMandatory,
          .block = kTopkBlock,
          .options = kOptions,
          .bits_per_element = bits_per_element,
          .max_error = max_error,
          .wire_bytes = wire_bytes,
          .encode = encode,
          .decode = decode,
          .decode_accumulate = decode_accumulate};
}

}  // namespace tern
