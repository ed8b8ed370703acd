// bf16: every element rounded to the nearest bf16 (ties to even). fp32's range, 8 bits of precision, no
// scale.
#include <algorithm>
#include <array>

#include "kernels/convert.h"
#include "kernels/reduce.h"
#include "runtime/codec/message.h"

namespace tern {
namespace {

/// Elements converted at a time: small enough for the first-level cache, so that the wire needs no alignment
/// and the check for overflow reads no memory a second time.
constexpr size_t kPiece = 2048;
/// fp32 magnitudes from here on round to inf.
constexpr uint32_t kOverflowBits = 0x7F7F8000;

double bits_per_element(const CodecSpec&) {
  return 16;
}

double max_error(const CodecSpec& /*spec*/, double absmax) {
  return absmax * 0x1p-8;  // half a unit in the last place, 8 bits of precision
}

size_t wire_bytes(const CodecSpec&, size_t n) {
  return sizeof(WireHeader) + plane_bytes(n * sizeof(Bfloat16));
}

EncodeStats encode(const EncodeArgs& args) {
  TERN_CHECK(args.residual == nullptr);
  std::byte* plane = PlaneWriter(args.wire).next(args.in.size() * sizeof(Bfloat16));
  EncodeStats stats;
  std::array<Bfloat16, kPiece> piece;
  for (size_t i = 0; i < args.in.size(); i += kPiece) {
    const auto in = args.in.subspan(i, std::min(kPiece, args.in.size() - i));
    stats.non_finite |= max_magnitude_bits(in) >= kOverflowBits;
    convert(in, std::span(piece).first(in.size()));
    std::memcpy(plane + i * sizeof(Bfloat16), piece.data(), in.size() * sizeof(Bfloat16));
  }
  write_header(args, stats);
  return stats;
}

/// Calls consume(begin, decoded piece) for all pieces in order.
template <class Consume>
void decode_pieces(const std::byte* wire, size_t n, Consume consume) {
  const std::byte* plane = PlaneReader(wire).next(n * sizeof(Bfloat16));
  std::array<Bfloat16, kPiece> piece;
  for (size_t i = 0; i < n; i += kPiece) {
    const auto bits = std::span(piece).first(std::min(kPiece, n - i));
    std::memcpy(bits.data(), plane + i * sizeof(Bfloat16), bits.size_bytes());
    consume(i, std::span<const Bfloat16>(bits));
  }
}

void decode(const CodecSpec&, const std::byte* wire, std::span<float> out) {
  decode_pieces(wire, out.size(), [&](size_t i, std::span<const Bfloat16> piece) {
    convert(piece, out.subspan(i, piece.size()));
  });
}

void decode_accumulate(const CodecSpec&, const std::byte* wire, std::span<float> out) {
  std::array<float, kPiece> values;
  decode_pieces(wire, out.size(), [&](size_t i, std::span<const Bfloat16> piece) {
    convert(piece, std::span(values).first(piece.size()));
    const void* srcs[] = {out.data() + i, values.data()};
    reduce(Dtype::kFloat32, Op::kSum, out.data() + i, srcs, piece.size());
  });
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
          .decode = decode,
          .decode_accumulate = decode_accumulate};
}

}  // namespace tern
