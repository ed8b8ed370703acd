// The plans of all ranks of a world, for tests.
#pragma once

#include <vector>

#include "runtime/plan/registry.h"

namespace tern {

enum class InPlace : uint8_t { kNone, kAll, kSome };

/// What plans of a test are made for.
struct TestWorld {
  Collective collective = Collective::kAllReduce;
  int n_ranks = 1;
  int root = 0;
  bool uneven = false;
  InPlace in_place = InPlace::kNone;
  std::vector<int> hosts = {};  ///< by rank; empty: one host
  bool encoded = false;

  PlanRequest request(int rank) const {
    const bool is_in_place = in_place == InPlace::kAll || (in_place == InPlace::kSome && rank % 2 == 1);
    return {.collective = collective,
            .rank = rank,
            .n_ranks = n_ranks,
            .root = root,
            .uneven = uneven,
            .in_place = is_in_place,
            .encoded = encoded,
            .node_of = hosts};
  }
};

/// Worlds of hosts: by rank. 3 + 1 + 2 ranks, equal ones in blocks and taking turns, one rank each, one host.
inline const std::vector<std::vector<int>> kHosts = {
    {0, 0, 0, 1, 2, 2},
    {0, 0, 1, 1},
    {0, 1, 0, 1, 0, 1},
    {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2},
    {0, 1, 2, 3, 4},
    {0, 0, 0},
    {0, 1, 1, 1, 1, 1, 1, 1},
    {0, 1, 0, 2, 1, 0, 0, 3, 3},
    {0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4},
};

inline bool supports(const Algorithm& algorithm, const TestWorld& world) {
  return algorithm.supports(world.request(0));
}

inline std::vector<Plan> plans_of(const Algorithm& algorithm, const TestWorld& world) {
  std::vector<Plan> plans;
  plans.reserve(static_cast<size_t>(world.n_ranks));
  for (int rank = 0; rank < world.n_ranks; ++rank)
    plans.push_back(build_plan(algorithm, world.request(rank)).value());
  return plans;
}

inline std::vector<Plan> plans_of(const Algorithm& algorithm, Collective collective, int n_ranks,
                                  int root = 0) {
  return plans_of(algorithm, TestWorld{collective, n_ranks, root});
}

inline std::vector<Plan> plans_of(std::string_view algorithm, Collective collective, int n_ranks,
                                  int root = 0) {
  return plans_of(*find_algorithm(algorithm).value(), collective, n_ranks, root);
}

/// Calls body(algorithm, collective) for every supported pair on one host.
template <class Body>
void for_each_pair(int n_ranks, Body body) {
  for (const Algorithm& algorithm : algorithms())
    for (int c = 0; c < kNumCollectives; ++c)
      if (const auto collective = static_cast<Collective>(c);
          supports(algorithm, TestWorld{collective, n_ranks}))
        body(algorithm, collective);
}

/// "direct all_reduce, p = 5, root 0", for SCOPED_TRACE.
inline std::string label(const Algorithm& algorithm, Collective collective, int n_ranks, int root = 0) {
  return fmt::format("{} {}, p = {}, root {}", algorithm.name, name(collective), n_ranks, root);
}
inline std::string label(const Algorithm& algorithm, const TestWorld& world) {
  return label(algorithm, world.collective, world.n_ranks, world.root) +
         fmt::format(", {}uneven, in place {}, hosts [{}]", world.uneven ? "" : "not ",
                     static_cast<int>(world.in_place), fmt::join(world.hosts, " "));
}

}  // namespace tern
