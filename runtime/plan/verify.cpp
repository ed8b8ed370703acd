// The symbolic machine: all ranks' plans, round by round, over values that record where they came from.
//
// A round's sends are received in the same round, all are posted when the round starts, and a rank waits for
// nothing else: by induction over the rounds every wait ends. So "no deadlock" is what post_sends() and
// take() check: that the sends and receives of every round match, pair by pair, in order.
#include "runtime/plan/verify.h"

#include <algorithm>

#include "runtime/plan/form.h"
#include "runtime/plan/symbolic.h"

namespace tern {
namespace {

using symbolic::Value;

bool is_receive(StepKind kind) {
  return kind == StepKind::kRecv || kind == StepKind::kRecvReduce;
}

// The buffers of one rank. In place, chunk c of kOutput is chunk c of kInput.
class Memory {
 public:
  Memory(const Plan& plan, bool in_place)
      : output_(in_place ? 0 : static_cast<size_t>(plan.n_chunks)),
        scratch_(2 * static_cast<size_t>(plan.n_chunks)),
        wire_(scratch_ + static_cast<size_t>(plan.n_scratch)),
        values_(wire_ + static_cast<size_t>(plan.n_wire)),
        sent_in_(values_.size(), -1),
        touched_in_(values_.size(), -1) {}

  /// Where chunk `i` of a ref lies.
  size_t place(const Ref& ref, int i) const {
    const auto at = [i](size_t first, int idx) { return first + static_cast<size_t>(idx + i); };
    switch (ref.buffer) {
      case Buffer::kInput:
        return at(0, ref.chunk);
      case Buffer::kOutput:
        return at(output_, ref.chunk);
      case Buffer::kScratch:
        return at(scratch_, ref.slot);
      default:
        return at(wire_, ref.slot);
    }
  }
  Value& at(const Ref& ref, int i) { return values_[place(ref, i)]; }
  /// The last round in which a send read, and in which local work read or wrote, this chunk.
  int& sent_in(const Ref& ref, int i) { return sent_in_[place(ref, i)]; }
  int& touched_in(const Ref& ref, int i) { return touched_in_[place(ref, i)]; }

 private:
  size_t output_, scratch_, wire_;  // first places; kInput's is 0
  std::vector<Value> values_;
  std::vector<int> sent_in_;
  std::vector<int> touched_in_;
};

// The number under which the sender of an output chunk has it.
int label_of(const Plan& plan, int chunk) {
  return plan.collective == Collective::kAllToAll ? plan.rank : chunk;
}

// What an output chunk must hold: one contribution of each rank in [first, last).
struct Due {
  int first, last;
  std::array<uint64_t, 2> sum{};
};

// The rank whose contribution alone an output chunk holds.
int source_of(const Plan& plan, int chunk) {
  switch (plan.collective) {
    case Collective::kAllGather:
    case Collective::kGather:
    case Collective::kAllToAll:
      return chunk / (plan.n_chunks / plan.n_ranks);
    case Collective::kSendRecv:
      return (plan.rank + plan.n_ranks - 1) % plan.n_ranks;
    default:
      return plan.root;
  }
}

Due due_of(const Plan& plan, int chunk) {
  const bool is_sum = reduces(plan.collective);
  const int source = is_sum ? 0 : source_of(plan, chunk);
  Due due{source, is_sum ? plan.n_ranks : source + 1};
  for (int r = due.first; r < due.last; ++r) {
    const Value one = symbolic::contribution(r, label_of(plan, chunk));
    due.sum = {due.sum[0] + one.sum[0], due.sum[1] + one.sum[1]};
  }
  return due;
}

// Whether every rank that holds a chunk of the result must have computed it in the same way.
bool is_on_many(Collective c) {
  return c == Collective::kAllReduce || c == Collective::kAllGather || c == Collective::kBroadcast;
}

std::string difference(const Value& got, const Due& due, int chunk) {
  if (due.last == due.first + 1) return fmt::format("is not what rank {} has for it", due.first);
  for (int r = due.first; r < due.last; ++r) {
    const uint64_t one = symbolic::contribution(r, chunk).sum[0];
    if (got.sum[0] + one == due.sum[0]) return fmt::format("lacks the contribution of rank {}", r);
    if (got.sum[0] - one == due.sum[0])
      return fmt::format("holds the contribution of rank {} once too often", r);
  }
  return "does not hold each due contribution exactly once";
}

struct Message {
  int to, from;
  const Step* send;
  bool is_taken = false;
};

class Machine {
 public:
  Machine(std::span<const Plan> plans, bool in_place);
  Status run();

 private:
  Status post_sends(int round);
  Status run_rank(int rank, int round);
  Status run_local(int rank, const Step& step);
  Status run_reduction(int rank, std::span<const Step> steps);
  Result<const Step*> take(int rank, const Step& receive);
  Result<Value> operand(int rank, const Step& step, const Step* sent, int i);
  Result<Value> add(int rank, const Step& step, const Value& a, const Value& b);
  Result<Value> read(int rank, const Step& step, const Ref& ref, int i);
  Status write(int rank, const Step& step, int i, const Value& value);
  Status check_result();
  Status check_chunk(int rank, int chunk);
  Status check_barrier() const;
  std::vector<Step>::const_iterator& cursor(int rank) { return cursors_[static_cast<size_t>(rank)]; }
  const Plan& plan(int rank) const { return plans_[static_cast<size_t>(rank)]; }

  std::span<const Plan> plans_;
  std::vector<Memory> memory_;
  std::vector<std::vector<Step>::const_iterator> cursors_;  // first step of the current round
  std::vector<Message> messages_;  // of the current round, by receiver, sender, order
  std::vector<std::vector<bool>> heard_,
      heard_before_;  // barrier: from whom each rank has heard, directly or not
};

Machine::Machine(std::span<const Plan> plans, bool in_place) : plans_(plans) {
  const size_t p = plans.size();
  for (const Plan& each : plans) {
    cursors_.push_back(each.steps.begin());
    Memory& memory = memory_.emplace_back(each, in_place && !each.out_of_place_only);
    const HeldChunks held = held_chunks(each, Buffer::kInput);
    for (int c = held.first; c < held.first + held.n; ++c)
      memory.at({Buffer::kInput, static_cast<int16_t>(c)}, 0) = symbolic::contribution(each.rank, c);
  }
  if (plans[0].collective != Collective::kBarrier) return;
  heard_.assign(p, std::vector<bool>(p, false));
  for (size_t r = 0; r < p; ++r) heard_[r][r] = true;
}

Status Machine::run() {
  for (int round = 0; round < plans_[0].n_rounds; ++round) {
    TERN_TRY(post_sends(round));
    heard_before_ = heard_;
    for (int rank = 0; rank < plans_[0].n_ranks; ++rank) TERN_TRY(run_rank(rank, round));
    for (const Message& m : messages_)
      if (!m.is_taken) return plan_error(plan(m.from), *m.send, "nobody receives it in this round");
  }
  return check_result();
}

Status Machine::post_sends(int round) {
  messages_.clear();
  for (const Plan& each : plans_) {
    Memory& memory = memory_[static_cast<size_t>(each.rank)];
    for (auto step = cursor(each.rank); step != each.steps.end() && step->round == round; ++step) {
      if (step->kind != StepKind::kSend) continue;
      messages_.push_back({step->peer, each.rank, &*step});
      for (int i = 0; i < step->src.n_chunks; ++i) {
        TERN_TRY(read(each.rank, *step, step->src, i));
        memory.sent_in(step->src, i) = round;
      }
    }
  }
  std::stable_sort(messages_.begin(), messages_.end(), [](const Message& a, const Message& b) {
    return a.to != b.to ? a.to < b.to : a.from < b.from;
  });
  return {};
}

Status Machine::run_rank(int rank, int round) {
  const auto& steps = plan(rank).steps;
  auto& next = cursor(rank);
  while (next != steps.end() && next->round == round) {
    const auto first = static_cast<size_t>(next - steps.begin());
    const size_t end = reduction_end(steps, first);
    const std::span<const Step> group(steps.data() + first, end - first);
    switch (next->kind) {
      case StepKind::kSend:
        break;
      case StepKind::kEncode:
      case StepKind::kDecode:
      case StepKind::kDecodeAccumulate:
        TERN_TRY(run_local(rank, *next));
        break;
      default:
        TERN_TRY(run_reduction(rank, group));
    }
    next = steps.begin() + static_cast<std::ptrdiff_t>(end);
  }
  return {};
}

Status Machine::run_local(int rank, const Step& step) {
  for (int i = 0; i < step.dst.n_chunks; ++i) {
    TERN_ASSIGN(Value value, read(rank, step, step.src, i));
    if (step.kind == StepKind::kEncode) value = symbolic::encoded(value);
    if (step.kind == StepKind::kDecodeAccumulate) {
      TERN_ASSIGN(const Value before, read(rank, step, step.dst, i));
      TERN_ASSIGN(value, add(rank, step, before, value));
    }
    TERN_TRY(write(rank, step, i, value));
  }
  return {};
}

Result<Value> Machine::add(int rank, const Step& step, const Value& a, const Value& b) {
  if (a.quantised > 1 || b.quantised > 1)
    return plan_error(plan(rank), step, "it adds to what was quantised twice");
  return symbolic::reduced(a, b);
}

Status Machine::run_reduction(int rank, std::span<const Step> steps) {
  const Step& head = steps.front();
  Memory& memory = memory_[static_cast<size_t>(rank)];
  std::vector<const Step*> sent(steps.size(), nullptr);
  for (size_t k = 0; k < steps.size(); ++k) {
    if (!is_receive(steps[k].kind)) continue;
    TERN_ASSIGN(sent[k], take(rank, steps[k]));
  }
  const bool overwrites = head.kind == StepKind::kRecv || head.kind == StepKind::kCopy;
  for (int i = 0; i < head.dst.n_chunks; ++i) {
    const bool is_self_copy = head.kind == StepKind::kCopy && steps.size() == 1 &&
                              memory.place(head.src, i) == memory.place(head.dst, i);
    if (head.kind == StepKind::kRecv && memory.touched_in(head.dst, i) == head.round)
      return plan_error(plan(rank), head,
                        "its bytes may land while an earlier step of the round works there");
    Value value;
    if (!overwrites) {
      TERN_ASSIGN(value, read(rank, head, head.dst, i));
    }
    for (size_t k = 0; k < steps.size(); ++k) {
      TERN_ASSIGN(const Value next, operand(rank, steps[k], sent[k], i));
      if (overwrites && k == 0) {
        value = next;
        continue;
      }
      TERN_ASSIGN(value, add(rank, steps[k], value, next));
    }
    if (!is_self_copy) TERN_TRY(write(rank, head, i, value));
  }
  return {};
}

// The send that a receive gets: the first from its peer that is not taken yet.
Result<const Step*> Machine::take(int rank, const Step& receive) {
  const auto before = [](const Message& m, const std::pair<int, int>& key) {
    return std::pair(m.to, m.from) < key;
  };
  auto m =
      std::lower_bound(messages_.begin(), messages_.end(), std::pair<int, int>(rank, receive.peer), before);
  const auto from_peer = [&] { return m != messages_.end() && m->to == rank && m->from == receive.peer; };
  while (from_peer() && m->is_taken) ++m;
  if (!from_peer())
    return plan_error(plan(rank), receive, "it waits for ever: its peer sends nothing in this round");
  m->is_taken = true;
  const Ref& src = m->send->src;
  const bool both_wire = (src.buffer == Buffer::kWire) == (receive.dst.buffer == Buffer::kWire);
  const bool same_chunks = src.chunk == receive.dst.chunk || plan(rank).collective == Collective::kAllToAll;
  if (src.n_chunks != receive.dst.n_chunks || (src.n_chunks > 0 && !same_chunks))
    return plan_error(plan(rank), receive, "its peer sends other chunks: " + to_string(*m->send));
  if (src.n_chunks > 0 && !both_wire)
    return plan_error(plan(rank), receive, "only one end is encoded: " + to_string(*m->send));
  if (!heard_.empty()) {
    auto& heard = heard_[static_cast<size_t>(rank)];
    const auto& theirs = heard_before_[static_cast<size_t>(receive.peer)];
    for (size_t r = 0; r < heard.size(); ++r) heard[r] = heard[r] || theirs[r];
  }
  return m->send;
}

Result<Value> Machine::operand(int rank, const Step& step, const Step* sent, int i) {
  // A sender's memory is as it was when the round started: write() refuses to change what is being sent.
  if (sent != nullptr) return memory_[static_cast<size_t>(step.peer)].at(sent->src, i);
  return read(rank, step, step.src, i);
}

Result<Value> Machine::read(int rank, const Step& step, const Ref& ref, int i) {
  Memory& memory = memory_[static_cast<size_t>(rank)];
  const Value& value = memory.at(ref, i);
  if (!value.is_written()) return plan_error(plan(rank), step, "it reads what was never written");
  const Plan& p = plan(rank);
  const bool is_all_to_all = p.collective == Collective::kAllToAll;
  if (!is_all_to_all && value.chunk != ref.chunk + i)
    return plan_error(p, step, fmt::format("the place holds chunk {}", value.chunk));
  const bool has_its_size =
      ref.buffer == Buffer::kInput || value.sum == symbolic::contribution(ref.chunk + i, rank).sum;
  if (is_all_to_all && p.uneven && !has_its_size)
    return plan_error(p, step, fmt::format("the place does not hold the block of rank {}", ref.chunk + i));
  if (step.kind != StepKind::kSend) memory.touched_in(ref, i) = step.round;
  return value;
}

Status Machine::write(int rank, const Step& step, int i, const Value& value) {
  Memory& memory = memory_[static_cast<size_t>(rank)];
  if (memory.sent_in(step.dst, i) == step.round)
    return plan_error(plan(rank), step, "it overwrites what a send of the same round still reads");
  memory.at(step.dst, i) = value;
  memory.touched_in(step.dst, i) = step.round;
  return {};
}

Status Machine::check_result() {
  if (plans_[0].collective == Collective::kBarrier) return check_barrier();
  for (const Plan& each : plans_) {
    const HeldChunks held = held_chunks(each, Buffer::kOutput);
    for (int c = held.first; c < held.first + held.n; ++c) TERN_TRY(check_chunk(each.rank, c));
  }
  return {};
}

Status Machine::check_chunk(int rank, int chunk) {
  const Plan& p = plan(rank);
  const auto wrong = [&](std::string what) {
    return error_at(rank, Code::kInternal, "{} by {}, rank {} of {}: output chunk {} {}", name(p.collective),
                    p.algorithm, rank, p.n_ranks, chunk, what);
  };
  const Ref ref{Buffer::kOutput, static_cast<int16_t>(chunk)};
  const Value& got = memory_[static_cast<size_t>(rank)].at(ref, 0);
  if (!got.is_written()) return wrong("was never written");
  const Due due = due_of(p, chunk);
  if (got.sum != due.sum) return wrong(difference(got, due, label_of(p, chunk)));
  const Value& reference = memory_[0].at(ref, 0);
  if (is_on_many(p.collective) && got.form != reference.form)
    return wrong("is computed in another order than on rank 0, so that its bits may differ");
  return {};
}

Status Machine::check_barrier() const {
  for (const Plan& each : plans_) {
    const auto& heard = heard_[static_cast<size_t>(each.rank)];
    const auto missing = std::find(heard.begin(), heard.end(), false);
    if (missing != heard.end())
      return error_at(each.rank, Code::kInternal,
                      "barrier by {}, rank {} of {}: it may leave before rank {} came", each.algorithm,
                      each.rank, each.n_ranks, missing - heard.begin());
  }
  return {};
}

Status check_together(std::span<const Plan> plans) {
  if (plans.empty()) return error(Code::kInternal, "there are no plans to verify");
  const Plan& a = plans.front();
  for (size_t r = 0; r < plans.size(); ++r) {
    const Plan& b = plans[r];
    const bool same = a.collective == b.collective && a.n_chunks == b.n_chunks && a.n_rounds == b.n_rounds &&
                      a.root == b.root && a.moves_runs == b.moves_runs &&
                      b.n_ranks == static_cast<int>(plans.size()) && b.rank == static_cast<int>(r);
    if (!same)
      return error_at(
          static_cast<int>(r), Code::kInternal,
          "the plan at place {} ({} by {}, rank {} of {}, {} chunks, {} rounds, root {}) does not go with "
          "that of rank 0 among {} plans",
          r, name(b.collective), b.algorithm, b.rank, b.n_ranks, b.n_chunks, b.n_rounds, b.root,
          plans.size());
    TERN_TRY(check_form(b));
  }
  return {};
}

}  // namespace

Status verify(std::span<const Plan> plans) {
  TERN_TRY(check_together(plans));
  TERN_TRY(Machine(plans, false).run());
  return Machine(plans, true).run();
}

}  // namespace tern
