#include "runtime/communicator/planner.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/codec/codec_choice.h"
#include "runtime/communicator/cost.h"
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

Planner::Key Planner::key_of(const Shape& shape) const {
  const std::string_view only =
      shape.algorithm.empty() ? setup_.rules.find(shape.collective, shape.n_bytes) : shape.algorithm;
  return {shape.collective, size_class(shape.n_bytes),  shape.elt,    shape.root,
          shape.codec.id,   option_number(shape.codec), shape.uneven, shape.in_place,
          std::string(only)};
}

Result<const Decision*> Planner::decide(const Shape& shape) {
  // The training loop's and the benchmark's case: the same shape again.
  if (last_ != nullptr && shape == last_shape_) return last_;
  const Key key = key_of(shape);
  auto found = decisions_.find(key);
  if (found == decisions_.end()) {
    TERN_ASSIGN(Decision decision, choose(shape, std::get<std::string>(key)));
    found = decisions_.emplace(key, decision).first;
  }
  last_ = &found->second;
  last_shape_ = shape;
  // The caller's text may go away; the key's copy stays.
  if (!shape.algorithm.empty()) last_shape_.algorithm = std::get<std::string>(found->first);
  return last_;
}

Result<std::vector<std::pair<CodecSpec, const Decision*>>> Planner::codec_candidates(
    Shape shape, const CodecQuestion& question) {
  std::vector<std::pair<CodecSpec, const Decision*>> candidates;
  for (const CodecSpec& codec : allowed_codecs(question.max_loss_gap, question.has_residual, shape.elt)) {
    shape.codec = codec;
    const Result<const Decision*> decision = decide(shape);
    if (decision.ok()) candidates.emplace_back(codec, *decision);
    if (!decision.ok() && decision.error().code != Code::kUnsupported) return decision.error();
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return a.second->predicted_seconds < b.second->predicted_seconds;
  });
  return candidates;
}

Result<Planner::BestCodec> Planner::find_best(const Shape& shape, const CodecQuestion& question) {
  TERN_ASSIGN(const auto candidates, codec_candidates(shape, question));
  TERN_ASSIGN(const Decision* dense, decide(shape));
  BestCodec best{.dense_seconds = dense->predicted_seconds};
  if (candidates.empty()) return best;
  best.codec = candidates.front().first;
  best.encoded_seconds = candidates.front().second->predicted_seconds;
  return best;
}

Result<CodecVerdict> Planner::weigh_codecs(const Shape& shape, const CodecQuestion& question) {
  if (shape.n_bytes < kLeastEncodedBytes) return CodecVerdict{.reason = CodecReason::kSmall};
  if (last_best_ == nullptr || !(shape == last_weighed_) || !(question == last_question_)) {
    const BestKey key{key_of(shape), question.max_loss_gap, question.has_residual};
    auto found = best_codecs_.find(key);
    if (found == best_codecs_.end()) {
      TERN_ASSIGN(const BestCodec best, find_best(shape, question));
      found = best_codecs_.emplace(key, best).first;
    }
    last_best_ = &found->second;
    last_weighed_ = shape;
    last_question_ = question;
    if (!shape.algorithm.empty())
      last_weighed_.algorithm = std::get<std::string>(std::get<Key>(found->first));
  }
  const BestCodec& best = *last_best_;
  if (best.codec.id == CodecId::kNone)
    return CodecVerdict{.reason = CodecReason::kNoneAllowed, .dense_seconds = best.dense_seconds};
  return weigh(best.codec, best.encoded_seconds, best.dense_seconds, question.hidden_seconds);
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
    model = encoded_model(std::move(model), shape.codec, shape.elt, setup_.codecs);
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
