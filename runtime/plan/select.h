// The planner's question: which algorithm, cut how, is predicted to be fastest?
#pragma once

#include <array>
#include <vector>

#include "runtime/plan/rules.h"
#include "runtime/plan/simulate.h"

namespace tern {

/// Segment sizes that are tried, bytes; 0: not cut.
inline constexpr std::array<size_t, 5> kSegmentSizes = {0, 64 << 10, 256 << 10, 1 << 20, 4 << 20};

/// More segments than this are not tried: each costs its overhead, and a pipeline is full long before.
inline constexpr size_t kMaxSegments = 2048;

/// A call to find a plan for.
struct CandidateQuery {
  Collective collective = Collective::kAllReduce;
  int n_ranks = 1;
  int root = 0;
  size_t n_bytes = 0;          ///< the whole vector, dense
  size_t elt = 4;              ///< bytes per element
  bool encoded = false;        ///< only algorithms that can be; the model's wire_ratio and codec speeds apply
  size_t least_segment = 0;    ///< smaller segments are not tried, bytes (encoded ones carry a header each)
  std::string_view only = {};  ///< "": free choice; else an algorithm, or with its segment size "ring@1M"
  bool uneven = false;         ///< see PlanRequest, as the two below
  bool in_place = false;
  std::span<const int> node_of = {};
  bool rank_order = false;  ///< only algorithms that sum in rank order, where anything is summed
};

struct Candidate {
  const Algorithm* algorithm = nullptr;
  size_t segment_bytes = 0;
  Prediction prediction;
};

/// The host of each rank as CandidateQuery::node_of takes it, from what the model knows; empty: one host.
std::vector<int> hosts_of(const CostModel& model, int n_ranks);

/// One rank's plan. query.n_bytes and only do not matter.
/// Errors: kUnsupported (the algorithm does not have the collective, cannot be encoded, or sums in another
///         order than asked for).
Result<Plan> make_plan(const CandidateQuery& query, const Algorithm& algorithm, int rank);

/// The plans of all ranks; the same errors.
Result<std::vector<Plan>> make_plans(const CandidateQuery& query, const Algorithm& algorithm);

/// Every algorithm that can run the call with every segment size that differs, fastest predicted first (of
/// equals: fewer messages, then the order of the registry). Never empty.
///
/// Cost:   a simulation each; together below 0.5 ms for 4 ranks and about 0.1 s for 64.
/// Errors: kInvalidArgument (`only` is not a choice), kUnsupported (what `only` says cannot run this call, or
///         nothing can).
Result<std::vector<Candidate>> rank_candidates(const CandidateQuery& query, const CostModel& model);

/// rank_candidates().front(), found without simulating candidates that cannot be the fastest.
///
/// Cost:   below 0.1 ms for 4 ranks and 10 ms for 64.
/// Errors: those of rank_candidates().
Result<Candidate> fastest_candidate(const CandidateQuery& query, const CostModel& model);

/// The choices for one collective at all sizes, in the grammar of TERN_ALGORITHM: powers of two up to
/// max_bytes, where a choice is kept until another is at least 1 % faster. query.n_bytes does not matter.
/// Errors: those of rank_candidates().
Result<AlgorithmRules> decisions(CandidateQuery query, const CostModel& model, size_t max_bytes);

}  // namespace tern
