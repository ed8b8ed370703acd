// The algorithms: one row each. Tests, benches, `tern info` and the planner walk this table.
#pragma once

#include <span>

#include "runtime/plan/plan.h"

namespace tern {

/// What a plan is made for. All but rank and in_place must be equal on all ranks.
struct PlanRequest {
  Collective collective = Collective::kAllReduce;
  int rank = 0;
  int n_ranks = 1;
  int root = 0;  ///< where has_root()
  /// Chunk sizes may differ, and in all_to_all a rank knows only those it sends and those it gets.
  bool uneven = false;
  /// This rank's input and output are the same bytes. A plan may be made for that (all_to_all, sendrecv); its
  /// messages are the same either way, so ranks may differ.
  bool in_place = false;
  /// The host of each rank, numbered from 0 without gaps; empty: all on one. Lives as long as the call.
  std::span<const int> node_of = {};
};

struct Algorithm {
  std::string_view name;                         ///< "ring", "halving_doubling", "direct", ...
  std::string_view summary;                      ///< one line for `tern info`
  bool (*supports)(const PlanRequest& request);  ///< the same answer for all ranks and roots
  Plan (*build)(const PlanRequest& request);
  bool can_encode;  ///< with_codec() quantises each contribution once: no sums of sums travel
  bool rank_order;  ///< every sum is taken in rank order, in one pass; verify() proves it
};

std::span<const Algorithm> algorithms();
/// The error names the algorithms there are.
Result<const Algorithm*> find_algorithm(std::string_view name);

}  // namespace tern
