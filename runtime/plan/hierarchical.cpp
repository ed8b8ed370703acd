#include "runtime/plan/hierarchical.h"

#include <numeric>

#include "runtime/plan/compose.h"

namespace tern {
namespace {

Status check(const Hierarchy& h) {
  const auto lacks = [](const Algorithm& algorithm, Collective collective, int n_ranks) {
    return error(Code::kUnsupported, "{} has no {} for {} ranks", algorithm.name, name(collective), n_ranks);
  };
  for (const Collective c : {Collective::kReduceScatter, Collective::kAllGather})
    if (!h.within->supports({.collective = c, .n_ranks = h.ranks_per_node}))
      return lacks(*h.within, c, h.ranks_per_node);
  if (!h.across->supports({.collective = Collective::kAllReduce, .n_ranks = h.n_nodes}))
    return lacks(*h.across, Collective::kAllReduce, h.n_nodes);
  if (h.encode_across && !h.across->can_encode)
    return error(Code::kUnsupported, "{} cannot be encoded: it would quantise at every hop", h.across->name);
  return {};
}

}  // namespace

Result<Plan> hierarchical_all_reduce(const Hierarchy& h) {
  TERN_TRY(check(h));
  const int node = h.rank / h.ranks_per_node;
  const int local = h.rank % h.ranks_per_node;
  const int world = h.n_nodes * h.ranks_per_node;
  std::vector<int> neighbours(static_cast<size_t>(h.ranks_per_node));
  std::iota(neighbours.begin(), neighbours.end(), node * h.ranks_per_node);
  std::vector<int> rail(static_cast<size_t>(h.n_nodes));
  for (int i = 0; i < h.n_nodes; ++i) rail[static_cast<size_t>(i)] = i * h.ranks_per_node + local;

  Plan across = h.across->build({Collective::kAllReduce, node, h.n_nodes, 0});
  const int n_parts = across.n_chunks;  // of a local rank's share
  across = in_output(across);
  if (h.encode_across) {
    TERN_ASSIGN(across, with_codec(across));
  }
  TERN_ASSIGN(const Plan middle, on_group(on_chunk(across, local, h.ranks_per_node), rail, world));

  const auto inside = [&](Collective collective) {
    Plan plan = h.within->build({collective, local, h.ranks_per_node, 0});
    return refine(plan, n_parts);
  };
  TERN_ASSIGN(const Plan first, on_group(inside(Collective::kReduceScatter), neighbours, world));
  TERN_ASSIGN(const Plan last, on_group(in_output(inside(Collective::kAllGather)), neighbours, world));
  TERN_ASSIGN(const Plan reduced, sequence(first, middle));
  TERN_ASSIGN(Plan plan, sequence(reduced, last));
  plan.collective = Collective::kAllReduce;
  plan.root = 0;
  return plan;
}

}  // namespace tern
