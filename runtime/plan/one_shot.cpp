// One-shot: everybody sends everything to everybody, and everybody sums all p vectors in rank order.
//
// reduce: everybody sends to the root, which sums. all_reduce: one round of messages. The sum is made beside
// the input, because in place peers may still be reading that, and copied over it in a second round that
// sends nothing. barrier: an empty message to all.
//
// Cost:    p-1 messages of n per rank (reduce: one, and p-1 come to the root), p n reduced.
// Wins:    tiny vectors, where one alpha counts more than any bytes. Loses: from a few KiB on, large p.
// Codecs:  each share is quantised once; also the own one, so that all ranks sum the same.
// Source:  Thakur, Rabenseifner & Gropp, IJHPCA 2005 (all-to-all broadcast for short messages).
#include "runtime/plan/builder.h"

namespace tern::one_shot {
namespace {

/// Round 0 of a rank that gets everybody's vector: their sum in rank order.
void sum_all(PlanBuilder& b, const PlanRequest& request, Ref sum) {
  for (int from = 0; from < request.n_ranks; ++from) {
    const bool is_first = from == 0;
    if (from == request.rank) {
      is_first ? b.copy(0, input(0), sum) : b.reduce(0, input(0), sum);
    } else {
      is_first ? b.recv(0, from, sum) : b.recv_reduce(0, from, sum);
    }
  }
}

Plan reduce(const PlanRequest& request) {
  PlanBuilder b(request, "one_shot", 1);
  if (request.rank == request.root)
    sum_all(b, request, output(0));
  else
    b.send(0, request.root, input(0));
  return std::move(b).finish(1);
}

}  // namespace

bool supports(const PlanRequest& request) {
  const Collective collective = request.collective;
  return collective == Collective::kAllReduce || collective == Collective::kReduce ||
         collective == Collective::kBarrier;
}

Plan build(const PlanRequest& request) {
  const int p = request.n_ranks;
  const int rank = request.rank;
  if (p == 1) return plan_alone(request, "one_shot");
  if (request.collective == Collective::kReduce) return reduce(request);
  PlanBuilder b(request, "one_shot", 1);
  const bool is_barrier = request.collective == Collective::kBarrier;
  const Ref sent = is_barrier ? nothing() : input(0);
  for (int k = 1; k < p; ++k) b.send(0, (rank + k) % p, sent);
  if (is_barrier) {
    for (int k = 1; k < p; ++k) b.recv(0, (rank - k + p) % p, nothing());
    return std::move(b).finish(1);
  }
  const Ref sum = make_ref(Buffer::kScratch, 0, 1, 0);
  sum_all(b, request, sum);
  b.copy(1, sum, output(0));
  return std::move(b).finish(2);
}

}  // namespace tern::one_shot
