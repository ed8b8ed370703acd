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
  const bool owned =
      plan.collective == Collective::kReduceScatter || plan.collective == Collective::kAllGather;
  return owned && plan.moves_runs;
}

bool same_memory(const Ref& a, const Ref& b, bool in_place) {
  if (a == b) return true;
  const auto is_users = [](Buffer buffer) { return buffer == Buffer::kInput || buffer == Buffer::kOutput; };
  return in_place && is_users(a.buffer) && is_users(b.buffer) && a.chunk == b.chunk &&
         a.n_chunks == b.n_chunks;
}

}  // namespace tern
