#include "runtime/plan/plan.h"

namespace tern {

size_t reduction_end(std::span<const Step> steps, size_t first) {
  const auto reduces = [](StepKind kind) {
    return kind == StepKind::kRecvReduce || kind == StepKind::kReduce;
  };
  const Step& head = steps[first];
  size_t end = first + 1;
  if (head.kind != StepKind::kRecv && head.kind != StepKind::kCopy && !reduces(head.kind)) return end;
  while (end < steps.size() && reduces(steps[end].kind) && steps[end].round == head.round &&
         steps[end].dst == head.dst)
    ++end;
  return end;
}

bool must_stay_whole(const Plan& plan) {
  return owners_fixed(plan.collective) && plan.moves_runs;
}

HeldChunks held_chunks(const Plan& plan, Buffer buffer) {
  const HeldChunks all{0, plan.n_chunks};
  const int per_rank = plan.n_chunks / plan.n_ranks;
  const HeldChunks own{plan.rank * per_rank, per_rank};
  const HeldChunks at_root = plan.rank == plan.root ? all : HeldChunks{};
  const bool is_input = buffer == Buffer::kInput;
  switch (plan.collective) {
    case Collective::kReduceScatter:
      return is_input ? all : own;
    case Collective::kAllGather:
      return is_input ? own : all;
    case Collective::kGather:
      return is_input ? own : at_root;
    case Collective::kScatter:
      return is_input ? at_root : own;
    case Collective::kBroadcast:
      return is_input ? at_root : all;
    case Collective::kReduce:
      return is_input ? all : at_root;
    case Collective::kBarrier:
      return {};
    case Collective::kAllReduce:
    case Collective::kAllToAll:
    case Collective::kSendRecv:
      break;
  }
  return all;
}

std::vector<int> scratch_regions(const Plan& plan) {
  // Joined to the place before it: what a run covers behind its first place.
  std::vector<bool> joined(static_cast<size_t>(plan.n_scratch), false);
  for (const Step& step : plan.steps)
    for (const Ref* ref : {&step.src, &step.dst})
      if (ref->buffer == Buffer::kScratch)
        for (int i = 1; i < ref->n_chunks; ++i) joined[static_cast<size_t>(ref->slot + i)] = true;
  std::vector<int> regions(joined.size(), 0);
  for (size_t i = 1; i < joined.size(); ++i) regions[i] = joined[i] ? regions[i - 1] : static_cast<int>(i);
  return regions;
}

bool same_memory(const Ref& a, const Ref& b, bool in_place) {
  if (a == b) return true;
  const auto is_users = [](Buffer buffer) { return buffer == Buffer::kInput || buffer == Buffer::kOutput; };
  return in_place && is_users(a.buffer) && is_users(b.buffer) && a.chunk == b.chunk &&
         a.n_chunks == b.n_chunks;
}

}  // namespace tern
