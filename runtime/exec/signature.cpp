#include "runtime/exec/signature.h"

namespace tern {

namespace {

constexpr int kSequenceBits = 20, kCollectiveBits = 4, kDtypeBits = 4, kOpBits = 4, kCodecBits = 8,
              kRootBits = 12, kPlanBits = 12;
static_assert(kSequenceBits + kCollectiveBits + kDtypeBits + kOpBits + kCodecBits + kRootBits + kPlanBits ==
              64);

constexpr uint64_t mask(int n_bits) {
  return (uint64_t{1} << n_bits) - 1;
}

// Four bits of id, four of options: a test holds all codecs to it.
uint64_t codec_bits(const CodecSpec& spec) {
  return static_cast<uint64_t>(spec.id) | static_cast<uint64_t>(option_number(spec)) << 4;
}

CodecSpec codec_from(uint64_t bits) {
  const uint64_t id = bits & 0xF;
  if (id >= codecs().size()) return {};  // of a message that is not Tern's
  return spec_of(static_cast<CodecId>(id), static_cast<uint16_t>(bits >> 4));
}

constexpr uint32_t kMessagePlan = (1U << kPlanBits) - 1;

}  // namespace

Signature message_signature() {
  return {.collective = Collective::kSendRecv, .dtype = Dtype::kUint8, .plan = kMessagePlan};
}

Envelope pack(const Signature& s) {
  uint64_t call = 0;
  int at = 0;
  const auto put = [&](uint64_t value, int n_bits) {
    call |= (value & mask(n_bits)) << at;
    at += n_bits;
  };
  put(s.sequence, kSequenceBits);
  put(static_cast<uint64_t>(s.collective), kCollectiveBits);
  put(static_cast<uint64_t>(s.dtype), kDtypeBits);
  put(static_cast<uint64_t>(s.op), kOpBits);
  put(codec_bits(s.codec), kCodecBits);
  put(static_cast<uint64_t>(s.root), kRootBits);
  put(s.plan, kPlanBits);
  return {call, s.count};
}

Signature unpack(const Envelope& envelope) {
  uint64_t rest = envelope.call;
  const auto take = [&](int n_bits) {
    const uint64_t value = rest & mask(n_bits);
    rest >>= n_bits;
    return value;
  };
  Signature s;
  s.sequence = static_cast<uint32_t>(take(kSequenceBits));
  s.collective = static_cast<Collective>(take(kCollectiveBits));
  s.dtype = static_cast<Dtype>(take(kDtypeBits));
  s.op = static_cast<Op>(take(kOpBits));
  s.codec = codec_from(take(kCodecBits));
  s.root = static_cast<int>(take(kRootBits));
  s.plan = static_cast<uint32_t>(take(kPlanBits));
  s.count = envelope.count;
  return s;
}

std::string to_string(const Signature& s) {
  if (s.collective == Collective::kSendRecv && s.plan == kMessagePlan)
    return fmt::format("send or recv ({} bytes)", s.count);
  std::string text = fmt::format("{} #{}", name(s.collective), s.sequence);
  if (s.collective == Collective::kBarrier) return text;
  text += fmt::format(" ({}", name(s.dtype));
  if (reduces(s.collective)) text += fmt::format(", {}", name(s.op));
  text += fmt::format(", {} elements", s.count);
  if (has_root(s.collective)) text += fmt::format(", root {}", s.root);
  if (s.collective == Collective::kAllReduce || s.collective == Collective::kReduceScatter)
    text += fmt::format(", codec {}", to_string(s.codec));
  return text + ")";
}

Error mismatch_error(const Signature& mine, int rank, const Signature& theirs, int peer) {
  std::string detail;
  if (mine.plan != theirs.plan && to_string(mine) == to_string(theirs)) {
    detail =
        " with another algorithm, segment size or counts (TERN_ALGORITHM, TERN_SEGMENT_BYTES and, where each "
        "rank has a count, all counts must be equal on all ranks)";
  }
  return error_at(peer, Code::kMismatch,
                  "ranks called different collectives: rank {} called {}, rank {} called {}{}", rank,
                  to_string(mine), peer, to_string(theirs), detail);
}

}  // namespace tern
