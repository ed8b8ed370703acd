// Plans and their parts as text, for `tern plan show`, traces and error messages.
#include <array>

#include "runtime/base/nearest.h"
#include "runtime/plan/plan.h"

namespace tern {
namespace {

constexpr std::array<std::string_view, kNumCollectives> kCollectiveNames = {
    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier",
    "reduce",     "all_to_all",     "gather",     "scatter",   "sendrecv"};

constexpr std::array<std::string_view, 8> kStepNames = {
    "send", "recv", "recv_reduce", "copy", "reduce", "encode", "decode", "decode_accumulate"};

constexpr std::array<std::string_view, 4> kBufferNames = {"input", "output", "scratch", "wire"};

std::string range(int first, int n) {
  return n == 1 ? fmt::format("{}", first) : fmt::format("{}..{}", first, first + n - 1);
}

// "input[3]", "output[0..3]", "scratch 1[3]" (place 1 holds chunk 3), "nothing".
std::string to_string(const Ref& ref) {
  if (ref.n_chunks == 0) return "nothing";
  const std::string_view buffer = kBufferNames[static_cast<size_t>(ref.buffer)];
  if (ref.buffer == Buffer::kScratch || ref.buffer == Buffer::kWire)
    return fmt::format("{} {}[{}]", buffer, range(ref.slot, ref.n_chunks), range(ref.chunk, ref.n_chunks));
  return fmt::format("{}[{}]", buffer, range(ref.chunk, ref.n_chunks));
}

}  // namespace

std::string_view name(Collective collective) {
  return kCollectiveNames[static_cast<size_t>(collective)];
}

Result<Collective> parse_collective(std::string_view text) {
  for (size_t i = 0; i < kCollectiveNames.size(); ++i)
    if (kCollectiveNames[i] == text) return static_cast<Collective>(i);
  return error(Code::kInvalidArgument, "there is no collective \"{}\"; {}known: {}", text,
               did_you_mean(text, kCollectiveNames), fmt::join(kCollectiveNames, ", "));
}

std::string_view name(StepKind kind) {
  return kStepNames[static_cast<size_t>(kind)];
}

std::string to_string(const Step& step) {
  switch (step.kind) {
    case StepKind::kSend:
      return fmt::format("send {} to rank {}", to_string(step.src), step.peer);
    case StepKind::kRecv:
    case StepKind::kRecvReduce:
      return fmt::format("{} {} from rank {}", name(step.kind), to_string(step.dst), step.peer);
    default:
      return fmt::format("{} {} -> {}", name(step.kind), to_string(step.src), to_string(step.dst));
  }
}

std::string to_string(const Plan& plan) {
  std::string text = fmt::format("{} by {}, rank {} of {}: {} rounds, {} chunks", name(plan.collective),
                                 plan.algorithm, plan.rank, plan.n_ranks, plan.n_rounds, plan.n_chunks);
  if (has_root(plan.collective)) text += fmt::format(", root {}", plan.root);
  if (plan.n_scratch > 0) text += fmt::format(", {} scratch", plan.n_scratch);
  if (plan.n_wire > 0) text += fmt::format(", {} wire", plan.n_wire);
  text += '\n';
  int round = -1;
  for (const Step& step : plan.steps) {
    if (step.round != round) text += fmt::format("  round {}\n", step.round);
    round = step.round;
    text += fmt::format("    {}\n", to_string(step));
  }
  return text;
}

}  // namespace tern
