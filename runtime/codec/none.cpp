// none: the elements as they are, in a message. Dense collectives send no messages of this kind (they move
// raw bytes); the row makes "no codec" comparable with the others in tests and benches.
#include <algorithm>
#include <array>

#include "kernels/block_scale.h"
#include "kernels/copy.h"
#include "kernels/reduce.h"
#include "runtime/codec/message.h"
#include "runtime/codec/runs.h"

namespace tern {
namespace {

double bits_per_element(const CodecSpec&, size_t elt) {
  return 8.0 * static_cast<double>(elt);
}

double max_error(const CodecSpec& /*spec*/, double /*absmax*/) {
  return 0;
}

size_t wire_bytes(const CodecSpec&, Dtype dtype, size_t n) {
  return sizeof(WireHeader) + plane_bytes(n * size_of(dtype));
}

EncodeStats encode(const EncodeArgs& args) {
  TERN_CHECK(args.residual == nullptr);
  std::byte* plane = PlaneWriter(args.wire).next(args.in.n_bytes());
  copy(plane, args.in.data, args.in.n_bytes());
  EncodeStats stats;
  each_run(args,
           [&](const EncodeRun& run) { stats.non_finite |= max_magnitude_bits(run.in) >= kInfinityBits; });
  write_header(args, stats);
  return stats;
}

void decode_exactly(const CodecSpec&, const std::byte* wire, View out) {
  copy(out.data, PlaneReader(wire).next(out.n_bytes()), out.n_bytes());
}

void decode_run(const DecodeRun& run) {
  const Dtype dtype = dtype_of(read_header(run.wire));
  const size_t elt = size_of(dtype);
  const std::byte* plane = PlaneReader(run.wire).next(run.n * elt) + run.begin * elt;
  constexpr size_t kPiece = 2048;
  std::array<float, kPiece> copied;  // because the wire may lie at any address
  std::array<float, kPiece> widened;
  for (size_t i = 0; i < run.out.size(); i += kPiece) {
    const auto out = run.out.subspan(i, std::min(kPiece, run.out.size() - i));
    std::memcpy(copied.data(), plane + i * elt, out.size() * elt);
    const std::span<float> in = run.how == Decode::kSet ? out : std::span(widened).first(out.size());
    widen_run({copied.data(), in.size(), dtype}, in);
    if (run.how == Decode::kSet) continue;
    const void* srcs[] = {out.data(), in.data()};
    reduce(Dtype::kFloat32, Op::kSum, out.data(), {srcs, out.size()});
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
          .decode_run = decode_run,
          .decode_exactly = decode_exactly};
}

}  // namespace tern
