#include "runtime/plan/registry.h"

#include <array>
#include <vector>

#include "runtime/plan/compose.h"

namespace tern {

// The table: ROW(name and namespace, encodes, rank_order, summary). Each row's functions live in
// <name>.cpp.
#define TERN_ALGORITHMS(ROW)                                                                                \
  ROW(ring, kNothing, false, "neighbours in a ring: fewest bytes, most rounds")                             \
  ROW(bi_ring, kNothing, false, "both neighbours at once: the ring's bytes in half its rounds")             \
  ROW(halving_doubling, kNothing, false,                                                                    \
      "recursive halving and doubling, any rank count: the ring's bytes in few rounds")                     \
  ROW(recursive_multiplying, kNothing, false,                                                               \
      "recursive doubling by threes and fours: fewest rounds, for small vectors")                           \
  ROW(direct, kMessages, true,                                                                              \
      "all-to-all, summed at the owner in rank order (two-shot); what codecs ride on")                      \
  ROW(pairwise, kMessages, false, "all-to-all one partner a round: no congestion, little scratch")          \
  ROW(bruck, kNothing, false, "all_gather and all_to_all in log2 p rounds, for small blocks on many ranks") \
  ROW(one_shot, kMessages, true, "everybody sends all to everybody: one round, for tiny vectors")           \
  ROW(tree, kNothing, false, "binomial tree: few messages, for small vectors on many ranks")                \
  ROW(knomial, kNothing, false, "tree of degree four: half the levels of a binomial tree")                  \
  ROW(double_tree, kNothing, false, "two binary trees, half the vector each: a pipeline in log2 p rounds")  \
  ROW(chain, kNothing, false,                                                                               \
      "a line from the root, a pipeline once segmented: huge broadcasts and reduces")                       \
  ROW(hierarchical, kBetweenHosts, false, "inside hosts and between them: the least bytes between hosts")   \
  ROW(dissemination, kNothing, false, "barrier in ceil(log2 p) rounds")

#define TERN_DECLARE(ns, encodes, rank_order, summary) \
  namespace ns {                                       \
  bool supports(const PlanRequest& request);           \
  Plan build(const PlanRequest& request);              \
  }
TERN_ALGORITHMS(TERN_DECLARE)
#undef TERN_DECLARE

namespace {
#define TERN_ROW(ns, encodes, rank_order, summary) \
  Algorithm{#ns, summary, ns::supports, ns::build, Encodes::encodes, rank_order},
constexpr auto kAlgorithms = std::to_array<Algorithm>({TERN_ALGORITHMS(TERN_ROW)});
#undef TERN_ROW
}  // namespace

std::span<const Algorithm> algorithms() {
  return kAlgorithms;
}

Result<Plan> build_plan(const Algorithm& algorithm, const PlanRequest& request) {
  const auto lacks = [&](std::string_view what) {
    return error(Code::kUnsupported, "{} has no {}{} for {} ranks{}{}", algorithm.name, what,
                 name(request.collective), request.n_ranks, request.uneven ? " with uneven counts" : "",
                 request.node_of.empty() ? " on one host" : "");
  };
  if (!algorithm.supports(request)) return lacks(request.encoded ? "encoded " : "");
  if (!request.encoded) return algorithm.build(request);
  if (request.uneven && request.collective == Collective::kAllToAll)
    return error(Code::kUnsupported, "all_to_all with uneven counts cannot be encoded");
  if (!algorithm.can_encode())
    return error(Code::kUnsupported, "{} by {} cannot be encoded: it would quantise sums of sums",
                 name(request.collective), algorithm.name);
  if (algorithm.encodes == Encodes::kBetweenHosts) return algorithm.build(request);
  return with_codec(algorithm.build(request));
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
