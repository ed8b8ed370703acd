#include "runtime/plan/builder.h"

#include <algorithm>

namespace tern {

PlanBuilder::PlanBuilder(const PlanRequest& request, std::string_view algorithm, int n_chunks) {
  plan_.collective = request.collective;
  plan_.algorithm = algorithm;
  plan_.rank = request.rank;
  plan_.n_ranks = request.n_ranks;
  plan_.root = request.root;
  plan_.n_chunks = n_chunks;
  plan_.uneven = request.uneven;
}

void PlanBuilder::send(int round, int peer, Ref src) {
  add(StepKind::kSend, round, peer).src = src;
}

void PlanBuilder::recv(int round, int peer, Ref dst) {
  add(StepKind::kRecv, round, peer).dst = dst;
}

void PlanBuilder::recv_reduce(int round, int peer, Ref dst) {
  add(StepKind::kRecvReduce, round, peer).dst = dst;
}

void PlanBuilder::copy(int round, Ref src, Ref dst) {
  Step& step = add(StepKind::kCopy, round);
  step.src = src;
  step.dst = dst;
}

void PlanBuilder::reduce(int round, Ref src, Ref dst) {
  Step& step = add(StepKind::kReduce, round);
  step.src = src;
  step.dst = dst;
}

Step& PlanBuilder::add(StepKind kind, int round, int peer) {
  Step& step = plan_.steps.emplace_back();
  step.kind = kind;
  step.peer = static_cast<int16_t>(peer);
  step.round = static_cast<uint16_t>(round);
  return step;
}

Plan PlanBuilder::finish(int n_rounds) && {
  plan_.n_rounds = n_rounds;
  for (const Step& step : plan_.steps)
    if (step.dst.buffer == Buffer::kScratch)
      plan_.n_scratch = std::max(plan_.n_scratch, step.dst.slot + step.dst.n_chunks);
  const auto earlier = [](const Step& a, const Step& b) { return a.round < b.round; };
  if (!std::is_sorted(plan_.steps.begin(), plan_.steps.end(), earlier))
    std::stable_sort(plan_.steps.begin(), plan_.steps.end(), earlier);
  return std::move(plan_);
}

Plan plan_alone(const PlanRequest& request, std::string_view algorithm) {
  PlanBuilder b(request, algorithm, 1);
  if (request.collective == Collective::kBarrier) return std::move(b).finish(0);
  b.copy(0, input(0), output(0));
  return std::move(b).finish(1);
}

}  // namespace tern
