// topk: k of every 4096 elements, 12 + 8 bits each and 16 per block; only with a residual. Format:
// kernels/topk.h.
#include "kernels/topk.h"

#include "runtime/base/dtype.h"
#include "runtime/codec/message.h"
#include "runtime/codec/runs.h"

namespace tern {
namespace {

constexpr CodecOption kOptions[] = {{.name = "k", .member = &CodecSpec::k, .allowed = kTopkChoices}};

double bits_per_element(const CodecSpec& spec, size_t /*elt*/) {
  return (spec.k * 20.0 + 16.0) / kTopkBlock;
}

size_t scale_bytes(size_t n) {
  return topk_blocks(n) * sizeof(Bfloat16);
}

double max_error(const CodecSpec& /*spec*/, double absmax) {
  return absmax;  // that of an element left out
}

size_t wire_bytes(const CodecSpec& spec, Dtype, size_t n) {
  return sizeof(WireHeader) + plane_bytes(topk_index_bytes(n, spec.k)) +
         plane_bytes(topk_entries(n, spec.k)) + plane_bytes(scale_bytes(n));
}

EncodeStats encode(const EncodeArgs& args) {
  const size_t n = args.in.n;
  const int k = args.spec.k;
  PlaneWriter planes(args.wire);
  std::byte* indices = planes.next(topk_index_bytes(n, k));
  std::byte* values = planes.next(topk_entries(n, k));
  std::byte* scales = planes.next(scale_bytes(n));
  size_t n_non_finite = 0;
  // The threshold of a block is guessed from the one before it.
  each_run<8 * kRunGrain>(args, [&](const EncodeRun& run) {
    n_non_finite += topk_encode(run.in, run.residual, k,
                                {.indices = indices + topk_index_bytes(run.begin, k),
                                 .values = values + topk_entries(run.begin, k),
                                 .scales = scales + scale_bytes(run.begin)});
  });
  const EncodeStats stats{.non_finite = n_non_finite > 0};
  write_header(args, stats);
  return stats;
}

void decode_run(const DecodeRun& run) {
  const int k = run.spec.k;
  PlaneReader planes(run.wire);
  const std::byte* indices = planes.next(topk_index_bytes(run.n, k)) + topk_index_bytes(run.begin, k);
  const std::byte* values = planes.next(topk_entries(run.n, k)) + topk_entries(run.begin, k);
  const std::byte* scales = planes.next(scale_bytes(run.n)) + scale_bytes(run.begin);
  (run.how == Decode::kSet ? topk_decode : topk_decode_accumulate)({indices, values, scales}, k, run.out);
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
          .decode_run = decode_run,
          .loss_gap = {LossGap::kUnbounded, 1},
          .speed = {1 / 6e9, 1 / 130e9}};
}

}  // namespace tern
