// All-reduce in two levels: inside nodes and between them.
#pragma once

#include "runtime/plan/registry.h"

namespace tern {

/// Nodes of equal size; rank = node * ranks_per_node + local rank.
struct Hierarchy {
  int rank = 0;
  int n_nodes = 1;
  int ranks_per_node = 1;
  const Algorithm* within = nullptr;  ///< must support reduce_scatter and all_gather
  const Algorithm* across = nullptr;  ///< must support all_reduce
  bool encode_across = false;         ///< messages between nodes are encoded
};

/// within(node, reduce_scatter) ; across(ranks of equal local rank, all_reduce) ; within(node, all_gather).
///
/// Cost:   between nodes, n / ranks_per_node instead of n per rank; inside, two rounds of `within`.
/// Errors: kUnsupported (an algorithm lacks what it is asked for, or `across` cannot be encoded).
/// Source: Cho et al., BlueConnect, MLSys 2019.
Result<Plan> hierarchical_all_reduce(const Hierarchy& hierarchy);

}  // namespace tern
