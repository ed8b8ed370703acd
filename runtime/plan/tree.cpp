// Binomial tree over the ranks counted from the root: v's parent is v without its lowest set bit.
//
// broadcast, scatter: down the tree, the far half first. reduce, gather: up. all_reduce: partial sums up to
// rank 0, then broadcast. barrier: the same with empty messages.
//
// Cost:    ceil(log2 p) rounds (all_reduce and barrier twice that), at most log2 p messages of n per rank;
//          gather and scatter: (p-1)/p n at the root, and half of what it leads at each inner rank.
// Wins:    small vectors at larger p, and broadcast until a pipeline pays. Loses: large all_reduce, n per
//          level instead of n/p.
// Codecs:  none, sums of sums travel.
// Source:  Thakur, Rabenseifner & Gropp, IJHPCA 2005.
#include "runtime/plan/nomial.h"

namespace tern::tree {

bool supports(const PlanRequest& request) {
  const Collective c = request.collective;
  return c == Collective::kAllReduce || c == Collective::kBarrier || c == Collective::kBroadcast ||
         c == Collective::kReduce || c == Collective::kGather || c == Collective::kScatter;
}

Plan build(const PlanRequest& request) {
  return nomial::build(request, "tree", 2);
}

}  // namespace tern::tree
