// Recursive halving (reduce_scatter), doubling (all_gather), both (all_reduce), for any number of ranks: see
// splitting.h, with two parts.
//
// Cost:    ceil(log2 p) messages and about n (p-1)/p per rank (all_reduce twice that); all_gather sends one
//          message more per level where a group is odd.
// Wins:    middle sizes, the ring's bytes in log p rounds. Loses: where far partners share links.
// Codecs:  none, sums of sums travel.
// Sources: Rabenseifner, ICCS 2004; Thakur et al., IJHPCA 2005; Traeff, EuroPVM/MPI 2005 (any p).
#include "runtime/plan/splitting.h"

namespace tern::halving_doubling {

bool supports(const PlanRequest& request) {
  const Collective c = request.collective;
  return c == Collective::kAllReduce || c == Collective::kReduceScatter || c == Collective::kAllGather;
}

Plan build(const PlanRequest& request) {
  return splitting::build(request, "halving_doubling", 2);
}

}  // namespace tern::halving_doubling
