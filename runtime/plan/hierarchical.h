// Collectives in two levels: inside hosts and between them.
#pragma once

#include "runtime/plan/groups.h"
#include "runtime/plan/registry.h"

namespace tern {

/// What an all_reduce in two levels is made of.
struct Hierarchy {
  const Algorithm* within = nullptr;  ///< must have reduce_scatter and all_gather; uneven hosts: not used
  const Algorithm* across = nullptr;  ///< must have all_reduce
  bool encode_across = false;         ///< messages between hosts are encoded
};

/// Hosts of equal size: within(host, reduce_scatter) ; across(ranks of equal place, all_reduce) ;
/// within(host, all_gather). Else a host's first rank sums its ranks' vectors, takes part in the all_reduce
/// across hosts, and sends the result to them.
///
/// request: all_reduce; its node_of does not matter.
/// groups:  the hosts of the world; made once for all its ranks.
/// Cost:    between hosts, n / ranks_per_host instead of n per rank (uneven hosts: n per host); inside, two
///          rounds of `within`.
/// Errors:  kUnsupported (an algorithm lacks what it is asked for, or `across` cannot be encoded).
/// Source:  Cho et al., BlueConnect, MLSys 2019.
Result<Plan> hierarchical_all_reduce(const PlanRequest& request, const Groups& groups,
                                     const Hierarchy& hierarchy);

}  // namespace tern
