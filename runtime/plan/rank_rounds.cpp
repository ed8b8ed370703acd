#include "runtime/plan/rank_rounds.h"

#include <tuple>

namespace tern::simulation {
namespace {

bool is_receive(StepKind kind) {
  return kind == StepKind::kRecv || kind == StepKind::kRecvReduce;
}

bool has_work(const RankRounds::Phase& phase) {
  for (const int32_t n : phase.work)
    if (n > 0) return true;
  return false;
}

}  // namespace

void RankRounds::split(const Plan& plan, bool in_place) {
  messages.clear();
  phases.clear();
  PartFinder part_of(plan.steps);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const Part part = part_of(i);
    const Ref& ref = step.kind == StepKind::kSend ? step.src : step.dst;
    const bool encoded = ref.buffer == Buffer::kWire;
    if (step.kind == StepKind::kSend) {
      messages.push_back({step.peer, step.round, ref.n_chunks, -1, encoded});
      continue;
    }
    const bool is_new_round = phases.empty() || phases.back().round != step.round;
    // A reduction waits for all its operands; work that stands between receives parts them.
    const bool joins =
        !is_new_round && phases.back().n_messages > 0 && (part == Part::kFurther || !has_work(phases.back()));
    if (is_new_round || (is_receive(step.kind) && !joins)) phases.push_back({.round = step.round});
    Phase& phase = phases.back();
    const Work work = work_of(step, part, in_place);
    if (work != Work::kNone) phase.work[static_cast<size_t>(work)] += ref.n_chunks;
    if (!is_receive(step.kind)) continue;
    ++phase.n_messages;
    messages.push_back({step.peer, step.round, ref.n_chunks, static_cast<int>(phases.size()) - 1, encoded});
  }
}

void RankRounds::join() {
  const auto key = [&](size_t i) {
    return std::tuple(phases[i].round, phases[i].latency, phases[i].n_chunks);
  };
  bool is_joined = true;
  for (size_t i = 1; i < phases.size() && is_joined; ++i) is_joined = key(i - 1) < key(i);
  if (is_joined) return;
  order_.resize(phases.size());
  for (size_t i = 0; i < order_.size(); ++i) order_[i] = i;
  std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  joined_.clear();
  new_index_.resize(phases.size());
  for (size_t i = 0; i < order_.size(); ++i) {
    const Phase& phase = phases[order_[i]];
    const bool is_alike = i > 0 && key(order_[i]) == key(order_[i - 1]);
    if (!is_alike) joined_.push_back({phase.round, 0, {}, phase.latency, phase.n_chunks});
    Phase& whole = joined_.back();
    whole.n_messages += phase.n_messages;
    for (size_t w = 0; w < whole.work.size(); ++w) whole.work[w] += phase.work[w];
    new_index_[order_[i]] = static_cast<int>(joined_.size()) - 1;
  }
  std::swap(phases, joined_);
  for (Message& m : messages)
    if (m.phase >= 0) m.phase = new_index_[static_cast<size_t>(m.phase)];
}

}  // namespace tern::simulation
