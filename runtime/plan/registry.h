// The algorithms: one row each. Tests, benches, `tern info` and the planner walk this table.
#pragma once

#include <span>

#include "runtime/plan/plan.h"

namespace tern {

/// What a plan is made for.
struct PlanRequest {
  Collective collective = Collective::kAllReduce;
  int rank = 0;
  int n_ranks = 1;
  int root = 0;  ///< broadcast only
};

struct Algorithm {
  std::string_view name;     ///< "ring", "halving_doubling", "direct", "one_shot", "tree"
  std::string_view summary;  ///< one line for `tern info`
  bool (*supports)(Collective collective, int n_ranks);
  Plan (*build)(const PlanRequest& request);
  bool can_encode;  ///< with_codec() quantises each contribution once: no sums of sums travel
};

std::span<const Algorithm> algorithms();
/// The error names the algorithms there are.
Result<const Algorithm*> find_algorithm(std::string_view name);

}  // namespace tern
