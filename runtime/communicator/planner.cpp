#include "runtime/communicator/planner.h"

#include <bit>
#include <utility>

#include "runtime/plan/registry.h"

namespace tern {

namespace {

// Sizes with equal leading three bits decide alike.
size_t size_class(size_t n_bytes) {
  const int n_bits = std::bit_width(n_bytes);
  if (n_bits <= 3) return n_bytes;
  return n_bytes >> (n_bits - 3) << (n_bits - 3);
}

// A segment's encoded share should be a hundred times its header, or compression is lost again in headers.
constexpr double kLeastWireBytes = 100 * sizeof(WireHeader);

}  // namespace

Result<const Decision*> Planner::decide(const Shape& shape) {
  // The training loop's and the benchmark's case: the same shape again.
  if (last_ != nullptr && shape == last_shape_) return last_;
  const std::string_view only =
      shape.algorithm.empty() ? setup_.rules.find(shape.collective, shape.n_bytes) : shape.algorithm;
  const Key key{shape.collective, size_class(shape.n_bytes),  shape.elt,    shape.root,
                shape.codec.id,   option_number(shape.codec), shape.uneven, shape.in_place,
                std::string(only)};
  auto found = decisions_.find(key);
  if (found == decisions_.end()) {
    TERN_ASSIGN(Decision decision, choose(shape, only));
    found = decisions_.emplace(key, decision).first;
  }
  last_ = &found->second;
  last_shape_ = shape;
  // The caller's text may go away; the key's copy stays.
  if (!shape.algorithm.empty()) last_shape_.algorithm = std::get<std::string>(found->first);
  return last_;
}

Result<Decision> Planner::choose(const Shape& shape, std::string_view only) {
  const bool encoded = shape.codec.id != CodecId::kNone;
  CandidateQuery query{.collective = shape.collective,
                       .n_ranks = setup_.n_ranks,
                       .root = shape.root,
                       .n_bytes = shape.n_bytes,
                       .elt = shape.elt,
                       .encoded = encoded,
                       .only = only,
                       .uneven = shape.uneven,
                       .node_of = node_of_,
                       .rank_order = setup_.rank_order};
  CostModel model = setup_.model;
  if (encoded) {
    model.wire_ratio =
        info(shape.codec.id).bits_per_element(shape.codec, shape.elt) / (8 * static_cast<double>(shape.elt));
    query.least_segment = static_cast<size_t>(kLeastWireBytes / model.wire_ratio);
  }
  TERN_ASSIGN(const Candidate best, fastest_candidate(query, model));
  // Ranks may differ in this, and must choose alike all the same.
  query.in_place = shape.in_place;
  TERN_ASSIGN(const Program* ready, program(query, *best.algorithm));
  Decision decision;
  decision.program = ready;
  decision.algorithm = best.algorithm->name;
  decision.segment_bytes = setup_.segment_bytes > 0 ? setup_.segment_bytes : best.segment_bytes;
  decision.predicted_seconds = best.prediction.seconds;
  const auto idx = static_cast<uint32_t>(best.algorithm - algorithms().data());
  decision.fingerprint = idx << 6 | static_cast<uint32_t>(std::bit_width(decision.segment_bytes));
  return decision;
}

Result<const Program*> Planner::program(const CandidateQuery& query, const Algorithm& algorithm) {
  auto& slot = programs_[{query.collective, std::string(algorithm.name), query.root, query.encoded,
                          query.uneven, query.in_place}];
  if (slot == nullptr) {
    TERN_ASSIGN(Plan plan, make_plan(query, algorithm, setup_.rank));
    const bool whole = must_stay_whole(plan);
    slot = std::make_unique<Program>(compile(std::move(plan)));
    slot->cuts = !whole;
  }
  return slot.get();
}

}  // namespace tern
