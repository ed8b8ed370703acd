// The row of a codec whose blocks share a scale, made from its kernels and their shape.
#pragma once

#include "kernels/block_codec.h"
#include "runtime/codec/message.h"
#include "runtime/codec/runs.h"

namespace tern {

/// One format of a codec: its planes, in this order on the wire, and its kernels.
struct BlockKernels {
  BlockShape shape;
  BlockCounts (*encode)(const BlockInput& run, BlockPlanes out);
  void (*decode)(BlockView in, std::span<float> out, Decode how);
  /// Instead of decode(), for formats whose decoding takes the random numbers of the encoding.
  void (*decode_with)(BlockView in, std::span<float> out, Decode how, const ElementRandom& random) = nullptr;
};

/// What "rounding" may be; kStochastic makes the mean of what is decoded exact. Philox(step, element)
/// decides.
enum Rounding : int { kNearest, kStochastic };
inline constexpr int kRoundings[] = {kNearest, kStochastic};
inline constexpr std::string_view kRoundingNames[] = {"nearest", "stochastic"};
inline constexpr CodecOption kRoundingOptions[] = {
    {.name = "rounding", .member = &CodecSpec::rounding, .allowed = kRoundings, .words = kRoundingNames}};

/// The functions of a row; kKernels(spec) says which format an option chooses.
template <const BlockKernels& (*kKernels)(const CodecSpec&)>
struct BlockRow {
  static double bits_per_element(const CodecSpec& spec, size_t /*elt*/) {
    return kKernels(spec).shape.bits_per_element();
  }

  static size_t wire_bytes(const CodecSpec& spec, Dtype /*dtype*/, size_t n) {
    const BlockShape& shape = kKernels(spec).shape;
    return sizeof(WireHeader) + plane_bytes(shape.scales(n)) + plane_bytes(shape.codes(n)) +
           plane_bytes(shape.high(n));
  }

  static EncodeStats encode(const EncodeArgs& args) {
    const BlockKernels& kernels = kKernels(args.spec);
    PlaneWriter writer(args.wire);
    const BlockPlanes planes = planes_of<std::byte>(writer, kernels.shape, args.in.n);
    BlockCounts counts;
    each_run(args, [&](const EncodeRun& run) {
      counts +=
          kernels.encode({.in = run.in,
                          .residual = run.residual,
                          .stochastic = args.spec.rounding == kStochastic,
                          .random = {.step = args.tag.step, .first = args.tag.element_offset + run.begin}},
                         kernels.shape.at(planes, run.begin));
    });
    const EncodeStats stats{.non_finite = counts.n_non_finite > 0,
                            .n_saturated = static_cast<uint32_t>(counts.n_saturated)};
    write_header(args, stats);
    return stats;
  }

  static void decode_run(const DecodeRun& run) {
    const BlockKernels& kernels = kKernels(run.spec);
    PlaneReader reader(run.wire);
    const BlockView planes = planes_of<const std::byte>(reader, kernels.shape, run.n);
    const BlockView from = kernels.shape.at(planes, run.begin);
    if (kernels.decode_with == nullptr) return kernels.decode(from, run.out, run.how);
    const WireTag tag = read_header(run.wire).tag;
    kernels.decode_with(from, run.out, run.how, {tag.step, tag.element_offset + run.begin});
  }

  /// The row; what it does not say is the codec's to fill in.
  static CodecInfo info(CodecId id, std::string_view name) {
    CodecInfo row{.id = id, .name = name, .residual = ResidualUse::kNone};
    row.block = kKernels(CodecSpec{.id = id}).shape.block;
    row.bits_per_element = bits_per_element;
    row.wire_bytes = wire_bytes;
    row.encode = encode;
    row.decode_run = decode_run;
    return row;
  }

 private:
  template <class Byte, class Walk>
  static BlockPlanesOf<Byte> planes_of(Walk& walk, const BlockShape& shape, size_t n) {
    BlockPlanesOf<Byte> planes;
    planes.scales = walk.next(shape.scales(n));
    planes.codes = walk.next(shape.codes(n));
    if (shape.high_bits > 0) planes.high = walk.next(shape.high(n));
    return planes;
  }
};

/// What half a step of a scale that is rounded up to bf16 is of the block's absmax, codes in [-most, most].
constexpr double half_step(double absmax, double most) {
  return absmax / (2 * most) * (1 + 0x1p-7) * (1 + 0x1p-15);
}

}  // namespace tern
