// The plans of all ranks of a world, for tests.
#pragma once

#include <vector>

#include "runtime/plan/registry.h"

namespace tern {

inline std::vector<Plan> plans_of(const Algorithm& algorithm, Collective collective, int n_ranks,
                                  int root = 0) {
  std::vector<Plan> plans;
  for (int rank = 0; rank < n_ranks; ++rank)
    plans.push_back(algorithm.build({collective, rank, n_ranks, root}));
  return plans;
}

inline std::vector<Plan> plans_of(std::string_view algorithm, Collective collective, int n_ranks,
                                  int root = 0) {
  return plans_of(*find_algorithm(algorithm).value(), collective, n_ranks, root);
}

/// Calls body(algorithm, collective) for every supported pair.
template <class Body>
void for_each_pair(int n_ranks, Body body) {
  for (const Algorithm& algorithm : algorithms())
    for (int c = 0; c < kNumCollectives; ++c)
      if (const auto collective = static_cast<Collective>(c);
          algorithm.supports({.collective = collective, .n_ranks = n_ranks}))
        body(algorithm, collective);
}

/// "direct all_reduce, p = 5, root 0", for SCOPED_TRACE.
inline std::string label(const Algorithm& algorithm, Collective collective, int n_ranks, int root = 0) {
  return fmt::format("{} {}, p = {}, root {}", algorithm.name, name(collective), n_ranks, root);
}

}  // namespace tern
