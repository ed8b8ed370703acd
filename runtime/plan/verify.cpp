// The symbolic machine: all ranks' plans, round by round, over values that record where they came from.
#include "runtime/plan/verify.h"

#include <algorithm>
#include <array>
#include <optional>

#include "runtime/plan/due.h"
#include "runtime/plan/form.h"
#include "runtime/plan/match.h"
#include "runtime/plan/symbolic.h"

namespace tern {
namespace {

using symbolic::Value;

bool is_receive(StepKind kind) {
  return kind == StepKind::kRecv || kind == StepKind::kRecvReduce;
}

/// A place for a chunk: what it holds, and until when that may be read.
struct Place : Value {
  uint16_t sent_in = 0;     ///< 1 + the last round in which a send read it; 0: never
  uint16_t touched_in = 0;  ///< 1 + the last round in which local work read or wrote it
};

/// The buffers of all ranks, one after another. In place, chunk c of kOutput is chunk c of kInput.
class Memory {
 public:
  Memory(std::span<const Plan> plans, bool in_place) {
    std::ptrdiff_t n = 0;
    for (const Plan& plan : plans) {
      auto& begin = begin_.emplace_back();
      const bool shares = in_place && !plan.out_of_place_only;
      const HeldChunks in = held_chunks(plan, Buffer::kInput);
      const HeldChunks out = held_chunks(plan, Buffer::kOutput);
      const auto claim = [&](Buffer buffer, int first, int size) {
        begin[static_cast<size_t>(buffer)] = n - first;
        n += size;
      };
      claim(Buffer::kInput, shares ? 0 : in.first, shares ? plan.n_chunks : in.n);
      if (shares)
        begin[static_cast<size_t>(Buffer::kOutput)] = begin[static_cast<size_t>(Buffer::kInput)];
      else
        claim(Buffer::kOutput, out.first, out.n);
      claim(Buffer::kScratch, 0, plan.n_scratch);
      claim(Buffer::kWire, 0, plan.n_wire);
    }
    places_.resize(static_cast<size_t>(n));
    sent_to_.resize(static_cast<size_t>(n));
  }

  /// Where chunk `i` of a ref lies.
  size_t idx(int rank, const Ref& ref, int i) const {
    const bool by_slot = ref.buffer == Buffer::kScratch || ref.buffer == Buffer::kWire;
    return static_cast<size_t>(begin_[static_cast<size_t>(rank)][static_cast<size_t>(ref.buffer)] +
                               (by_slot ? ref.slot : ref.chunk) + i);
  }
  Place& operator[](size_t idx) { return places_[idx]; }
  /// The peer of the last send that read a place; -1: several in one round.
  int16_t& sent_to(size_t idx) { return sent_to_[idx]; }

 private:
  std::vector<std::array<std::ptrdiff_t, 4>> begin_;  // by rank and buffer: where its chunk or place 0 lies
  std::vector<Place> places_;
  std::vector<int16_t> sent_to_;
};

class Machine {
 public:
  Machine(std::span<const Plan> plans, const Matches& matches, bool in_place);
  Status run(const Due& due);

 private:
  bool post_sends(const Plan& plan, uint16_t round);
  bool run_rank(const Plan& plan, uint16_t round);
  bool run_codec(const Plan& plan, const Step& step);
  bool run_reduction(const Plan& plan, size_t first, size_t end);
  bool may_land(const Plan& plan, const Step& step, size_t idx, bool is_alone);
  const Value* operand(const Plan& plan, size_t step, int i);
  bool add(const Plan& plan, const Step& step, Value& sum, const Value& next);
  const Value* read(const Plan& plan, const Step& step, const Ref& ref, int i);
  bool has_its_size(const Plan& plan, const Step& step, int chunk, const Value& value);
  bool write(const Plan& plan, const Step& step, int i, const Value& value);
  Status check_result(const Due& due);
  bool fail(const Plan& plan, const Step& step, std::string_view what) {
    error_ = plan_error(plan, step, what);
    return false;
  }

  std::span<const Plan> plans_;
  const Matches& matches_;
  Memory memory_;
  std::vector<size_t> next_;  // by rank: first step of the current round
  std::optional<Error> error_;
};

Machine::Machine(std::span<const Plan> plans, const Matches& matches, bool in_place)
    : plans_(plans), matches_(matches), memory_(plans, in_place), next_(plans.size(), 0) {
  for (const Plan& plan : plans) {
    const HeldChunks held = held_chunks(plan, Buffer::kInput);
    for (int c = held.first; c < held.first + held.n; ++c)
      static_cast<Value&>(memory_[memory_.idx(plan.rank, {Buffer::kInput, static_cast<int16_t>(c)}, 0)]) =
          symbolic::contribution(plan.rank, c);
  }
}

Status Machine::run(const Due& due) {
  for (int r = 0; r < plans_[0].n_rounds; ++r) {
    const auto round = static_cast<uint16_t>(r);
    for (const Plan& plan : plans_)
      if (!post_sends(plan, round)) return *error_;
    for (const Plan& plan : plans_)
      if (!run_rank(plan, round)) return *error_;
  }
  return check_result(due);
}

bool Machine::post_sends(const Plan& plan, uint16_t round) {
  for (size_t i = next_[static_cast<size_t>(plan.rank)];
       i < plan.steps.size() && plan.steps[i].round == round; ++i) {
    const Step& step = plan.steps[i];
    if (step.kind != StepKind::kSend) continue;
    for (int k = 0; k < step.src.n_chunks; ++k) {
      if (read(plan, step, step.src, k) == nullptr) return false;
      const size_t idx = memory_.idx(plan.rank, step.src, k);
      uint16_t& sent_in = memory_[idx].sent_in;
      memory_.sent_to(idx) = sent_in == round + 1 ? int16_t{-1} : step.peer;
      sent_in = static_cast<uint16_t>(round + 1);
    }
  }
  return true;
}

bool Machine::run_rank(const Plan& plan, uint16_t round) {
  size_t& next = next_[static_cast<size_t>(plan.rank)];
  while (next < plan.steps.size() && plan.steps[next].round == round) {
    const size_t first = next;
    next = reduction_end(plan.steps, first);
    switch (plan.steps[first].kind) {
      case StepKind::kSend:
        break;
      case StepKind::kEncode:
      case StepKind::kDecode:
      case StepKind::kDecodeAccumulate:
        if (!run_codec(plan, plan.steps[first])) return false;
        break;
      default:
        if (!run_reduction(plan, first, next)) return false;
    }
  }
  return true;
}

bool Machine::run_codec(const Plan& plan, const Step& step) {
  for (int i = 0; i < step.dst.n_chunks; ++i) {
    const Value* src = read(plan, step, step.src, i);
    if (src == nullptr) return false;
    Value value = *src;
    if (step.kind == StepKind::kEncode) value = symbolic::encoded(value);
    if (step.kind == StepKind::kDecodeAccumulate) {
      const Value* before = read(plan, step, step.dst, i);
      if (before == nullptr) return false;
      Value sum = *before;
      if (!add(plan, step, sum, value)) return false;
      value = sum;
    }
    if (!write(plan, step, i, value)) return false;
  }
  return true;
}

bool Machine::add(const Plan& plan, const Step& step, Value& sum, const Value& next) {
  if (sum.quantised > 1 || next.quantised > 1) return fail(plan, step, "it adds to what was quantised twice");
  sum = symbolic::reduced(sum, next);
  return true;
}

bool Machine::run_reduction(const Plan& plan, size_t first, size_t end) {
  const Step& head = plan.steps[first];
  const bool overwrites = head.kind == StepKind::kRecv || head.kind == StepKind::kCopy;
  const bool is_alone = end == first + 1;
  for (int i = 0; i < head.dst.n_chunks; ++i) {
    const size_t dst = memory_.idx(plan.rank, head.dst, i);
    if (head.kind == StepKind::kCopy && is_alone && memory_.idx(plan.rank, head.src, i) == dst) {
      if (read(plan, head, head.src, i) == nullptr) return false;
      continue;
    }
    if (head.kind == StepKind::kRecv && !may_land(plan, head, dst, is_alone)) return false;
    const Value* value = overwrites ? operand(plan, first, i) : read(plan, head, head.dst, i);
    if (value == nullptr) return false;
    Value sum = *value;
    for (size_t k = overwrites ? first + 1 : first; k < end; ++k) {
      value = operand(plan, k, i);
      if (value == nullptr || !add(plan, plan.steps[k], sum, *value)) return false;
    }
    const bool is_sum = !overwrites || !is_alone;
    if (is_sum && !plan.encoded) sum.form = symbolic::rounded_form(sum.form);
    if (!write(plan, head, i, sum)) return false;
  }
  return true;
}

// Whether bytes may arrive at a place: of a receive alone from the start of a round on, when the sends of the
// round before may not have ended, but its peer has taken what it got then.
bool Machine::may_land(const Plan& plan, const Step& step, size_t idx, bool is_alone) {
  const Place& place = memory_[idx];
  if (place.touched_in == step.round + 1)
    return fail(plan, step, "its bytes may land while an earlier step of the round works there");
  const bool was_sent = place.sent_in > 0 && place.sent_in == step.round;
  if (is_alone && was_sent && step.dst.buffer != Buffer::kWire && memory_.sent_to(idx) != step.peer)
    return fail(plan, step, "its bytes may land while a send of the round before still reads there");
  return true;
}

const Value* Machine::operand(const Plan& plan, size_t step_idx, int i) {
  const Step& step = plan.steps[step_idx];
  if (!is_receive(step.kind)) return read(plan, step, step.src, i);
  // A sender's memory is as it was when the round started: write() refuses to change what is being sent.
  const Plan& sender = plans_[static_cast<size_t>(step.peer)];
  const Step& send = sender.steps[matches_.send_of(plan.rank, step_idx)];
  return &memory_[memory_.idx(sender.rank, send.src, i)];
}

const Value* Machine::read(const Plan& plan, const Step& step, const Ref& ref, int i) {
  Place& place = memory_[memory_.idx(plan.rank, ref, i)];
  const int chunk = ref.chunk + i;
  if (!place.is_written()) {
    fail(plan, step, "it reads what was never written");
    return nullptr;
  }
  if (plan.collective != Collective::kAllToAll && place.chunk != chunk) {
    fail(plan, step, fmt::format("the place holds chunk {}", place.chunk));
    return nullptr;
  }
  if (ref.buffer != Buffer::kInput && !has_its_size(plan, step, chunk, place)) return nullptr;
  if (step.kind != StepKind::kSend) place.touched_in = static_cast<uint16_t>(step.round + 1);
  return &place;
}

// Of an uneven all_to_all, a rank knows only the sizes of its own blocks.
bool Machine::has_its_size(const Plan& plan, const Step& step, int chunk, const Value& value) {
  if (!plan.uneven || plan.collective != Collective::kAllToAll) return true;
  if (value.sum == symbolic::contribution(chunk, plan.rank).sum) return true;
  return fail(plan, step, fmt::format("the place does not hold the block of rank {}", chunk));
}

bool Machine::write(const Plan& plan, const Step& step, int i, const Value& value) {
  Place& place = memory_[memory_.idx(plan.rank, step.dst, i)];
  if (place.sent_in == step.round + 1)
    return fail(plan, step, "it overwrites what a send of the same round still reads");
  if (!has_its_size(plan, step, step.dst.chunk + i, value)) return false;
  static_cast<Value&>(place) = value;
  place.touched_in = static_cast<uint16_t>(step.round + 1);
  return true;
}

Status Machine::check_result(const Due& due) {
  for (const Plan& plan : plans_) {
    const HeldChunks held = held_chunks(plan, Buffer::kOutput);
    for (int c = held.first; c < held.first + held.n; ++c) {
      const Ref ref{Buffer::kOutput, static_cast<int16_t>(c)};
      const Value& got = memory_[memory_.idx(plan.rank, ref, 0)];
      const bool has_reference = held_chunks(plans_[0], Buffer::kOutput).n == plan.n_chunks;
      const Value& reference = has_reference ? memory_[memory_.idx(0, ref, 0)] : got;
      const std::string wrong = due.wrong_with(plan, c, got, reference);
      if (!wrong.empty())
        return error_at(plan.rank, Code::kInternal, "{} by {}, rank {} of {}: output chunk {} {}",
                        name(plan.collective), plan.algorithm, plan.rank, plan.n_ranks, c, wrong);
    }
  }
  return {};
}

// A rank may leave a barrier when it has heard from every rank, directly or through others.
Status check_barrier(std::span<const Plan> plans) {
  using Word = uint64_t;
  constexpr size_t kBits = 64;
  const size_t p = plans.size();
  const size_t n_words = (p + kBits - 1) / kBits;
  std::vector<Word> heard(p * n_words, 0);
  for (size_t r = 0; r < p; ++r) heard[r * n_words + r / kBits] |= Word{1} << r % kBits;
  std::vector<Word> before;
  std::vector<size_t> next(p, 0);
  for (int round = 0; round < plans[0].n_rounds; ++round) {
    before = heard;
    for (size_t r = 0; r < p; ++r)
      for (; next[r] < plans[r].steps.size() && plans[r].steps[next[r]].round == round; ++next[r]) {
        const Step& step = plans[r].steps[next[r]];
        if (!is_receive(step.kind)) continue;
        const Word* theirs = &before[static_cast<size_t>(step.peer) * n_words];
        for (size_t w = 0; w < n_words; ++w) heard[r * n_words + w] |= theirs[w];
      }
  }
  for (size_t r = 0; r < p; ++r)
    for (size_t other = 0; other < p; ++other)
      if ((heard[r * n_words + other / kBits] >> other % kBits & 1) == 0)
        return error_at(static_cast<int>(r), Code::kInternal,
                        "barrier by {}, rank {} of {}: it may leave before rank {} came", plans[r].algorithm,
                        r, p, other);
  return {};
}

Status check_together(std::span<const Plan> plans) {
  if (plans.empty()) return error(Code::kInternal, "there are no plans to verify");
  const Plan& a = plans.front();
  for (size_t r = 0; r < plans.size(); ++r) {
    const Plan& b = plans[r];
    const bool same = a.collective == b.collective && a.n_chunks == b.n_chunks && a.n_rounds == b.n_rounds &&
                      a.root == b.root && a.moves_runs == b.moves_runs && a.uneven == b.uneven &&
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

Status verify(std::span<const Plan> plans, Promises promises) {
  TERN_TRY(check_together(plans));
  TERN_ASSIGN(const Matches matches, match_messages(plans));
  if (plans[0].collective == Collective::kBarrier) return check_barrier(plans);
  const Due due(plans[0], promises.rank_order);
  TERN_TRY(Machine(plans, matches, false).run(due));
  const bool none_in_place =
      std::all_of(plans.begin(), plans.end(), [](const Plan& plan) { return plan.out_of_place_only; });
  return none_in_place ? Status{} : Machine(plans, matches, true).run(due);
}

}  // namespace tern
