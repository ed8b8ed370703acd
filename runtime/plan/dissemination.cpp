// Dissemination barrier: in round k every rank tells the one 2^k on, and hears from the one 2^k back.
//
// Cost:    ceil(log2 p) empty messages per rank in as many rounds, half of a tree's.
// Wins:    barriers of more than a handful of ranks. Applies to nothing else.
// Source:  Hensgen, Finkel & Manber, IJPP 1988.
#include "runtime/plan/builder.h"

namespace tern::dissemination {

bool supports(const PlanRequest& request) {
  return request.collective == Collective::kBarrier;
}

Plan build(const PlanRequest& request) {
  const int p = request.n_ranks;
  if (p == 1) return plan_alone(request, "dissemination");
  PlanBuilder b(request, "dissemination", 1);
  const int n_rounds = ceil_log2(p);
  for (int k = 0; k < n_rounds; ++k) {
    const int distance = 1 << k;
    b.send(k, (request.rank + distance) % p, nothing());
    b.recv(k, (request.rank - distance + p) % p, nothing());
  }
  return std::move(b).finish(n_rounds);
}

}  // namespace tern::dissemination
