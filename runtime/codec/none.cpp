// none: the elements as they are, in a message. Dense collectives send no messages of this kind (they move
// raw bytes); the row makes "no codec" comparable with the others in tests and benches.
#include <algorithm>
#include <array>

#include "kernels/block_scale.h"
#include "kernels/copy.h"
#include "kernels/reduce.h"
#include "runtime/codec/message.h"

namespace tern {
namespace {

double bits_per_element(const CodecSpec&) {
  return 32;
}

double max_error(const CodecSpec& /*spec*/, double /*absmax*/) {
  return 0;
}

size_t wire_bytes(const CodecSpec&, size_t n) {
  return sizeof(WireHeader) + plane_bytes(n * sizeof(float));
}

EncodeStats encode(const EncodeArgs& args) {
  TERN_CHECK(args.residual == nullptr);
  std::byte* plane = PlaneWriter(args.wire).next(args.in.size_bytes());
  copy(plane, args.in.data(), args.in.size_bytes());
  const EncodeStats stats{.non_finite = max_magnitude_bits(args.in) >= kInfinityBits};
  write_header(args, stats);
  return stats;
}

void decode(const CodecSpec&, const std::byte* wire, std::span<float> out) {
  copy(out.data(), PlaneReader(wire).next(out.size_bytes()), out.size_bytes());
}

void decode_accumulate(const CodecSpec&, const std::byte* wire, std::span<float> out) {
  const std::byte* plane = PlaneReader(wire).next(out.size_bytes());
  std::array<float, 2048> piece;  // a copy, because the wire may lie at any address
  for (size_t i = 0; i < out.size(); i += piece.size()) {
    const size_t n = std::min(piece.size(), out.size() - i);
    std::memcpy(piece.data(), plane + i * sizeof(float), n * sizeof(float));
    const void* srcs[] = {out.data() + i, piece.data()};
    reduce(Dtype::kFloat32, Op::kSum, out.data() + i, {srcs, n});
  }
}

}  // namespace

CodecInfo none_codec() {
  return {.id = CodecId::kNone,
          .name = "none",
          .residual = ResidualUse::kNone,
          .block = 1,
          .options = {},
          .bits_per_element = bits_per_element,
          .max_error = max_error,
          .wire_bytes = wire_bytes,
          .encode = encode,
          .decode = decode,
          .decode_accumulate = decode_accumulate};
}

}  // namespace tern
