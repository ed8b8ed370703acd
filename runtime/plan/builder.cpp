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
}

void PlanBuilder::send(int round, int peer, Ref src) {
  add(StepKind::kSend, peer, round, src, {});
}
void PlanBuilder::recv(int round, int peer, Ref dst) {
  add(StepKind::kRecv, peer, round, {}, dst);
}
void PlanBuilder::recv_reduce(int round, int peer, Ref dst) {
  add(StepKind::kRecvReduce, peer, round, {}, dst);
}
void PlanBuilder::copy(int round, Ref src, Ref dst) {
  add(StepKind::kCopy, -1, round, src, dst);
}
void PlanBuilder::reduce(int round, Ref src, Ref dst) {
  add(StepKind::kReduce, -1, round, src, dst);
}

void PlanBuilder::add(StepKind kind, int peer, int round, Ref src, Ref dst) {
  if (dst.buffer == Buffer::kScratch) plan_.n_scratch = std::max(plan_.n_scratch, dst.slot + dst.n_chunks);
  plan_.steps.push_back({kind, static_cast<int16_t>(peer), static_cast<uint16_t>(round), src, dst});
}

Plan PlanBuilder::finish(int n_rounds) && {
  plan_.n_rounds = n_rounds;
  std::stable_sort(plan_.steps.begin(), plan_.steps.end(),
                   [](const Step& a, const Step& b) { return a.round < b.round; });
  return std::move(plan_);
}

Plan plan_alone(const PlanRequest& request, std::string_view algorithm) {
  PlanBuilder b(request, algorithm, 1);
  if (request.collective == Collective::kBarrier) return std::move(b).finish(0);
  b.copy(0, input(0), output(0));
  return std::move(b).finish(1);
}

}  // namespace tern
