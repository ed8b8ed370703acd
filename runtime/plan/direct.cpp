// Direct: every rank sends every other rank exactly what that one needs.
//
// reduce_scatter: chunk c of every rank goes to rank c, which sums the p shares in rank order, in one pass.
// all_gather: the owner of a chunk sends it to all. all_reduce: both (two-shot). broadcast: root to all.
//
// Cost:    p-1 messages of n/p per rank in one round (all_reduce: two), the fewest bytes; broadcast: (p-1) n
//          at the root.
// Wins:    shared memory and wherever all pairs are equally close. Loses: where p messages at once congest
//          the network, and for small vectors when p alphas weigh.
// Codecs:  the shape they are made for: every share is summed at its owner, one quantisation per level.
// Source:  Thakur, Rabenseifner & Gropp, IJHPCA 2005 (pairwise exchange).
#include "runtime/plan/builder.h"

namespace tern::direct {
namespace {

/// The peer `k` places on: in step k all ranks talk to different peers.
int forward(const PlanRequest& r, int k) {
  return (r.rank + k) % r.n_ranks;
}
int backward(const PlanRequest& r, int k) {
  return (r.rank - k + r.n_ranks) % r.n_ranks;
}

void scatter_round(PlanBuilder& b, const PlanRequest& r) {
  for (int k = 1; k < r.n_ranks; ++k) b.send(0, forward(r, k), input(forward(r, k)));
  const Ref own = output(r.rank);
  for (int from = 0; from < r.n_ranks; ++from) {
    const bool is_first = from == 0;
    if (from == r.rank) {
      is_first ? b.copy(0, input(r.rank), own) : b.reduce(0, input(r.rank), own);
    } else {
      is_first ? b.recv(0, from, own) : b.recv_reduce(0, from, own);
    }
  }
}

void gather_round(PlanBuilder& b, const PlanRequest& r, int round, Ref own) {
  for (int k = 1; k < r.n_ranks; ++k) b.send(round, forward(r, k), own);
  for (int k = 1; k < r.n_ranks; ++k) b.recv(round, backward(r, k), output(backward(r, k)));
}

Plan all_gather(const PlanRequest& request) {
  PlanBuilder b(request, "direct", request.n_ranks);
  gather_round(b, request, 0, input(request.rank));
  b.copy(0, input(request.rank), output(request.rank));
  return std::move(b).finish(1);
}

Plan broadcast(const PlanRequest& request) {
  PlanBuilder b(request, "direct", 1);
  if (request.rank == request.root) {
    for (int k = 1; k < request.n_ranks; ++k) b.send(0, forward(request, k), input(0));
    b.copy(0, input(0), output(0));
  } else {
    b.recv(0, request.root, output(0));
  }
  return std::move(b).finish(1);
}

}  // namespace

bool supports(Collective collective, int /*n_ranks*/) {
  return collective != Collective::kBarrier;
}

Plan build(const PlanRequest& request) {
  if (request.n_ranks == 1) return plan_alone(request, "direct");
  if (request.collective == Collective::kAllGather) return all_gather(request);
  if (request.collective == Collective::kBroadcast) return broadcast(request);
  PlanBuilder b(request, "direct", request.n_ranks);
  scatter_round(b, request);
  if (request.collective == Collective::kReduceScatter) return std::move(b).finish(1);
  gather_round(b, request, 1, output(request.rank));
  return std::move(b).finish(2);
}

}  // namespace tern::direct
