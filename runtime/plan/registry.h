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
  bool encoded = false;  ///< see Algorithm::encodes
  /// The host of each rank, numbered from 0 without gaps; empty: all on one. Lives as long as the call.
  std::span<const int> node_of = {};
};

/// Which messages of an algorithm can be encoded so that each contribution is quantised once.
enum class Encodes : uint8_t {
  kNothing,       ///< sums of sums travel
  kMessages,      ///< all: with_codec() of the dense plan
  kBetweenHosts,  ///< those between hosts: build() makes the plan
};

struct Algorithm {
  std::string_view name;                         ///< "ring", "halving_doubling", "direct", ...
  std::string_view summary;                      ///< one line for `tern info`
  bool (*supports)(const PlanRequest& request);  ///< the same answer for all ranks and roots
  Plan (*build)(const PlanRequest& request);     ///< the dense plan; kBetweenHosts: also the encoded one
  Encodes encodes;
  bool rank_order;  ///< every sum is taken in rank order, in one pass; verify() proves it
  bool can_encode() const { return encodes != Encodes::kNothing; }
};

std::span<const Algorithm> algorithms();
/// The plan of one rank, dense or encoded as the request says. Errors: kUnsupported (the algorithm does not
/// have that collective for such ranks, cannot be encoded, or a barrier or all_to_all with uneven counts
/// would be).
Result<Plan> build_plan(const Algorithm& algorithm, const PlanRequest& request);

/// The error names the algorithms there are.
Result<const Algorithm*> find_algorithm(std::string_view name);

}  // namespace tern
