// k-nomial tree with k = 4: half the levels of a binomial tree, three children at a time.
//
// broadcast, scatter: down the tree. reduce, gather: up, where a node adds the three sums of a level in one
// pass. barrier: up and down with empty messages.
//
// Cost:    ceil(log4 p) rounds, at most 3 log4 p messages of n per rank; gather and scatter: (p-1)/p n at the
//          root.
// Wins:    small vectors where starting a message costs little beside its flight (deep networks, shared
//          memory). Loses: where a rank's messages leave one after another, to the binomial tree.
// Codecs:  none, sums of sums travel.
// Source:  Bar-Noy & Kipnis, SPAA 1992 (postal model); Almasi et al., ICS 2005 (k-nomial on BlueGene).
#include "runtime/plan/nomial.h"

namespace tern::knomial {

bool supports(const PlanRequest& request) {
  const Collective c = request.collective;
  return c == Collective::kBarrier || c == Collective::kBroadcast || c == Collective::kReduce ||
         c == Collective::kGather || c == Collective::kScatter;
}

Plan build(const PlanRequest& request) {
  return nomial::build(request, "knomial", 4);
}

}  // namespace tern::knomial
