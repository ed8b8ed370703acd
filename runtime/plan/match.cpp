#include "runtime/plan/match.h"

#include "runtime/plan/form.h"

namespace tern {
namespace {

constexpr uint32_t kNone = ~uint32_t{0};

struct Message {
  int from = 0;
  uint32_t send = 0;  // kNone: taken
};

class Matcher {
 public:
  explicit Matcher(std::span<const Plan> plans)
      : plans_(plans),
        matches_(plans),
        next_(plans.size(), 0),
        begin_(plans.size() + 1, 0),
        first_from_(plans.size(), kNone) {}
  Result<Matches> run();

 private:
  void post_sends(int round);
  Status take_all(const Plan& plan, int round);
  Status check_pair(const Plan& plan, const Step& receive, const Step& send) const;
  const Plan& plan(int rank) const { return plans_[static_cast<size_t>(rank)]; }
  template <class Visit>
  static void each_step(const Plan& plan, size_t first, int round, Visit visit) {
    for (size_t i = first; i < plan.steps.size() && plan.steps[i].round == round; ++i) visit(i);
  }

  std::span<const Plan> plans_;
  Matches matches_;
  std::vector<size_t> next_;          // by rank: first step of the current round
  std::vector<uint32_t> begin_;       // by receiver: its first message of the round, and the end
  std::vector<uint32_t> fill_;        // by receiver: where its next message goes
  std::vector<Message> messages_;     // of the round, by receiver, sender and order
  std::vector<uint32_t> first_from_;  // by sender: its first message to the receiver at hand not yet taken
};

Result<Matches> Matcher::run() {
  for (int round = 0; round < plans_[0].n_rounds; ++round) {
    post_sends(round);
    for (const Plan& each : plans_) TERN_TRY(take_all(each, round));
  }
  return std::move(matches_);
}

void Matcher::post_sends(int round) {
  begin_.assign(plans_.size() + 1, 0);
  for (const Plan& each : plans_)
    each_step(each, next_[static_cast<size_t>(each.rank)], round, [&](size_t i) {
      if (each.steps[i].kind == StepKind::kSend) ++begin_[static_cast<size_t>(each.steps[i].peer) + 1];
    });
  for (size_t r = 1; r < begin_.size(); ++r) begin_[r] += begin_[r - 1];
  messages_.resize(begin_.back());
  fill_.assign(begin_.begin(), begin_.end() - 1);
  for (const Plan& each : plans_)
    each_step(each, next_[static_cast<size_t>(each.rank)], round, [&](size_t i) {
      if (each.steps[i].kind != StepKind::kSend) return;
      messages_[fill_[static_cast<size_t>(each.steps[i].peer)]++] = {each.rank, static_cast<uint32_t>(i)};
    });
}

// The receives of one rank's round; moves on to the next round.
Status Matcher::take_all(const Plan& plan, int round) {
  const auto rank = static_cast<size_t>(plan.rank);
  for (uint32_t m = begin_[rank + 1]; m-- > begin_[rank];)
    first_from_[static_cast<size_t>(messages_[m].from)] = m;
  size_t i = next_[rank];
  for (; i < plan.steps.size() && plan.steps[i].round == round; ++i) {
    const Step& step = plan.steps[i];
    if (step.kind != StepKind::kRecv && step.kind != StepKind::kRecvReduce) continue;
    uint32_t& next = first_from_[static_cast<size_t>(step.peer)];
    if (next == kNone || next >= begin_[rank + 1] || messages_[next].from != step.peer)
      return plan_error(plan, step, "it waits for ever: its peer sends nothing in this round");
    Message& message = messages_[next++];
    TERN_TRY(check_pair(plan, step, this->plan(step.peer).steps[message.send]));
    matches_.set(plan.rank, i, message.send);
    message.send = kNone;
  }
  next_[rank] = i;
  for (uint32_t m = begin_[rank]; m < begin_[rank + 1]; ++m) {
    const Plan& sender = this->plan(messages_[m].from);
    first_from_[static_cast<size_t>(sender.rank)] = kNone;
    if (messages_[m].send != kNone)
      return plan_error(sender, sender.steps[messages_[m].send], "nobody receives it in this round");
  }
  return {};
}

Status Matcher::check_pair(const Plan& plan, const Step& receive, const Step& send) const {
  const Ref& src = send.src;
  const Ref& dst = receive.dst;
  const bool same_chunks = src.chunk == dst.chunk || plan.collective == Collective::kAllToAll;
  if (src.n_chunks != dst.n_chunks || (src.n_chunks > 0 && !same_chunks))
    return plan_error(plan, receive, "its peer sends other chunks: " + to_string(send));
  const bool both_wire = (src.buffer == Buffer::kWire) == (dst.buffer == Buffer::kWire);
  if (src.n_chunks > 0 && !both_wire)
    return plan_error(plan, receive, "only one end is encoded: " + to_string(send));
  return {};
}

}  // namespace

Matches::Matches(std::span<const Plan> plans) {
  size_t n = 0;
  for (const Plan& plan : plans) {
    first_.push_back(n);
    n += plan.steps.size();
  }
  send_of_.resize(n);
}

Result<Matches> match_messages(std::span<const Plan> plans) {
  return Matcher(plans).run();
}

}  // namespace tern
