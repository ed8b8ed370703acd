#include "runtime/plan/registry.h"

#include <array>
#include <vector>

namespace tern {

// The table: ROW(name and namespace, can_encode, rank_order, summary). Each row's functions live in
// <name>.cpp.
#define TERN_ALGORITHMS(ROW)                                                                               \
  ROW(ring, false, false, "neighbours in a ring: fewest bytes, most rounds")                               \
  ROW(bi_ring, false, false, "both neighbours at once: the ring's bytes in half its rounds")               \
  ROW(halving_doubling, false, false,                                                                      \
      "recursive halving and doubling, any rank count: the ring's bytes in few rounds")                    \
  ROW(recursive_multiplying, false, false,                                                                 \
      "recursive doubling by threes and fours: fewest rounds, for small vectors")                          \
  ROW(direct, true, true, "all-to-all, summed at the owner in rank order (two-shot); what codecs ride on") \
  ROW(pairwise, true, false, "all-to-all one partner a round: no congestion, little scratch")              \
  ROW(bruck, false, false, "all_gather and all_to_all in log2 p rounds, for small blocks on many ranks")   \
  ROW(one_shot, true, true, "everybody sends all to everybody: one round, for tiny vectors")               \
  ROW(tree, false, false, "binomial tree: few messages, for small vectors on many ranks")                  \
  ROW(knomial, false, false, "tree of degree four: half the levels of a binomial tree")                    \
  ROW(double_tree, false, false, "two binary trees, half the vector each: a pipeline in log2 p rounds")    \
  ROW(chain, false, false, "a line from the root, a pipeline once segmented: huge broadcasts and reduces") \
  ROW(hierarchical, false, false, "inside hosts and between them: the least bytes between hosts")          \
  ROW(dissemination, false, false, "barrier in ceil(log2 p) rounds")

#define TERN_DECLARE(ns, can_encode, rank_order, summary) \
  namespace ns {                                          \
  bool supports(const PlanRequest& request);              \
  Plan build(const PlanRequest& request);                 \
  }
TERN_ALGORITHMS(TERN_DECLARE)
#undef TERN_DECLARE

namespace {
#define TERN_ROW(ns, can_encode, rank_order, summary) \
  Algorithm{#ns, summary, ns::supports, ns::build, can_encode, rank_order},
constexpr auto kAlgorithms = std::to_array<Algorithm>({TERN_ALGORITHMS(TERN_ROW)});
#undef TERN_ROW
}  // namespace

std::span<const Algorithm> algorithms() {
  return kAlgorithms;
}

Result<const Algorithm*> find_algorithm(std::string_view name) {
  std::string known;
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.name == name) return &algorithm;
    known += known.empty() ? "" : ", ";
    known += algorithm.name;
  }
  return error(Code::kNotFound, "there is no algorithm \"{}\"; there are {}", name, known);
}

}  // namespace tern
