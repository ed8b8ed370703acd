#include "runtime/plan/select.h"

#include <algorithm>

#include "runtime/base/size.h"
#include "runtime/plan/compose.h"
#include "runtime/plan/groups.h"

namespace tern {
namespace {

constexpr double kWorthAChange = 0.99;  // of the time of the choice made for smaller sizes

// The segment sizes that cut this plan's chunks differently, and not into more than kMaxSegments.
std::vector<size_t> distinct_segments(const Plan& plan, size_t n_bytes, size_t least) {
  std::vector<size_t> sizes;
  std::vector<size_t> counts;
  for (const size_t size : kSegmentSizes) {
    if (size > 0 && size < least) continue;
    const size_t n = n_segments(plan, {n_bytes, size});
    if (n > kMaxSegments || std::find(counts.begin(), counts.end(), n) != counts.end()) continue;
    sizes.push_back(size);
    counts.push_back(n);
  }
  return sizes;
}

// What can be run: plans of algorithms, each with the segment sizes to try.
struct Option {
  const Algorithm* algorithm;
  std::vector<Plan> plans;
  std::vector<size_t> segments;
};

Status add_option(const CandidateQuery& query, const AlgorithmChoice& choice, std::vector<Option>& options) {
  TERN_ASSIGN(std::vector<Plan> plans, make_plans(query, *choice.algorithm));
  std::vector<size_t> segments;
  if (choice.segment_bytes)
    segments.push_back(*choice.segment_bytes);
  else
    segments = distinct_segments(plans.front(), query.n_bytes, query.least_segment);
  options.push_back({choice.algorithm, std::move(plans), std::move(segments)});
  return {};
}

PlanRequest request_of(const CandidateQuery& query, int rank) {
  return {.collective = query.collective,
          .rank = rank,
          .n_ranks = query.n_ranks,
          .root = query.root,
          .uneven = query.uneven,
          .in_place = query.in_place,
          .encoded = query.encoded,
          .node_of = query.node_of};
}

bool has_order(const CandidateQuery& query, const Algorithm& algorithm) {
  return !query.rank_order || algorithm.rank_order || !reduces(query.collective);
}

bool can_run(const CandidateQuery& query, const Algorithm& algorithm) {
  return algorithm.supports(request_of(query, 0)) && (!query.encoded || algorithm.can_encode()) &&
         has_order(query, algorithm);
}

Error nobody_has(const CandidateQuery& query) {
  return error(Code::kUnsupported, "no algorithm has {}{} for {} ranks{}{}", query.encoded ? "encoded " : "",
               name(query.collective), query.n_ranks, query.uneven ? " with uneven counts" : "",
               query.node_of.empty() ? " on one host" : "");
}

Result<std::vector<Option>> options_of(const CandidateQuery& query) {
  std::vector<Option> options;
  if (query.encoded && query.collective == Collective::kBarrier)
    return error(Code::kUnsupported, "a barrier moves no data that could be encoded");
  if (!query.only.empty()) {
    TERN_ASSIGN(const AlgorithmChoice choice, parse_algorithm_choice(query.only));
    TERN_TRY(add_option(query, choice, options));
    return options;
  }
  for (const Algorithm& algorithm : algorithms())
    if (can_run(query, algorithm)) TERN_TRY(add_option(query, {&algorithm, {}}, options));
  if (options.empty()) return nobody_has(query);
  return options;
}

RunShape shape_of(const CandidateQuery& query, size_t segment) {
  return {query.n_bytes, segment, query.elt, query.in_place};
}

bool is_better(const Candidate& a, const Candidate& b) {
  if (a.prediction.seconds != b.prediction.seconds) return a.prediction.seconds < b.prediction.seconds;
  return a.prediction.n_messages < b.prediction.n_messages;
}

const Candidate* find(std::span<const Candidate> candidates, const AlgorithmChoice& choice) {
  for (const Candidate& c : candidates)
    if (c.algorithm == choice.algorithm && c.segment_bytes == choice.segment_bytes) return &c;
  return nullptr;
}

}  // namespace

std::vector<int> hosts_of(const CostModel& model, int n_ranks) {
  if (!model.node_of) return {};
  std::vector<int> nodes;
  for (int rank = 0; rank < n_ranks; ++rank) nodes.push_back(model.node_of(rank));
  return Groups(nodes).numbered();
}

Result<Plan> make_plan(const CandidateQuery& query, const Algorithm& algorithm, int rank) {
  if (!has_order(query, algorithm))
    return error(Code::kUnsupported, "{} by {} does not sum in rank order", name(query.collective),
                 algorithm.name);
  return build_plan(algorithm, request_of(query, rank));
}

Result<std::vector<Plan>> make_plans(const CandidateQuery& query, const Algorithm& algorithm) {
  std::vector<Plan> plans;
  plans.reserve(static_cast<size_t>(query.n_ranks));
  for (int rank = 0; rank < query.n_ranks; ++rank) {
    TERN_ASSIGN(Plan plan, make_plan(query, algorithm, rank));
    plans.push_back(std::move(plan));
  }
  return plans;
}

Result<std::vector<Candidate>> rank_candidates(const CandidateQuery& query, const CostModel& model) {
  TERN_ASSIGN(const std::vector<Option> options, options_of(query));
  std::vector<Candidate> candidates;
  for (const Option& option : options)
    for (const size_t segment : option.segments)
      candidates.push_back(
          {option.algorithm, segment, simulate(option.plans, shape_of(query, segment), model)});
  std::stable_sort(candidates.begin(), candidates.end(), is_better);
  return candidates;
}

Result<Candidate> fastest_candidate(const CandidateQuery& query, const CostModel& model) {
  TERN_ASSIGN(const std::vector<Option> options, options_of(query));
  struct Try {
    const Option* option;
    size_t segment;
    double least;  // s
    size_t idx;    // in rank_candidates()' order of equals
  };
  std::vector<Try> tries;
  for (const Option& option : options)
    for (const size_t segment : option.segments)
      tries.push_back(
          {&option, segment, least_seconds(option.plans, shape_of(query, segment), model), tries.size()});
  std::stable_sort(tries.begin(), tries.end(), [](const Try& a, const Try& b) { return a.least < b.least; });
  Candidate best;
  size_t best_idx = 0;
  for (const Try& t : tries) {
    if (best.algorithm != nullptr && t.least > best.prediction.seconds) break;
    const Candidate next{t.option->algorithm, t.segment,
                         simulate(t.option->plans, shape_of(query, t.segment), model)};
    const bool is_first = best.algorithm == nullptr;
    if (is_first || is_better(next, best) || (!is_better(best, next) && t.idx < best_idx)) {
      best = next;
      best_idx = t.idx;
    }
  }
  return best;
}

Result<AlgorithmRules> decisions(CandidateQuery query, const CostModel& model, size_t max_bytes) {
  AlgorithmRules rules;
  auto& of = rules.of[static_cast<size_t>(query.collective)];
  for (size_t n_bytes = 1; n_bytes <= max_bytes; n_bytes *= 2) {
    query.n_bytes = n_bytes;
    TERN_ASSIGN(const std::vector<Candidate> candidates, rank_candidates(query, model));
    const Candidate& best = candidates.front();
    const Candidate* current = of.empty() ? nullptr : find(candidates, of.back().choice);
    if (current != nullptr && best.prediction.seconds >= kWorthAChange * current->prediction.seconds)
      continue;
    if (!of.empty()) of.back().to = n_bytes;
    const AlgorithmChoice choice{best.algorithm, best.segment_bytes};
    of.push_back({of.empty() ? 0 : n_bytes, kInfiniteSize, choice, to_string(choice)});
  }
  return rules;
}

}  // namespace tern
