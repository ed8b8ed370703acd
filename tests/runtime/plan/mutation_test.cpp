// Breaks correct plans one step at a time; the verifier must object to every break that changes what is
// computed.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <tuple>

#include "runtime/plan/compose.h"
#include "runtime/plan/verify.h"
#include "tests/runtime/plan/worlds.h"

namespace tern {
namespace {

class Dice {
 public:
  explicit Dice(uint32_t seed) : engine_(seed) {}
  /// Uniform in [0, n).
  size_t roll(size_t n) { return engine_() % n; }

 private:
  std::mt19937 engine_;
};

/// A step of one rank's plan, and a way to break the plan there.
struct Place {
  std::vector<Plan>& plans;
  Plan& plan;
  size_t at;
  Dice& dice;
  Step& step() const { return plan.steps[at]; }
  /// Another step of the same round that is like this one in kind but not in `field`; null when there is
  /// none.
  Step* twin(const std::function<bool(const Step&)>& differs) const {
    for (Step& other : plan.steps)
      if (other.round == step().round && other.kind == step().kind && other.peer != step().peer &&
          differs(other))
        return &other;
    return nullptr;
  }
};

/// Returns false when the break does not apply to this step, or would not change what is computed.
struct Mutation {
  std::string_view name;
  bool (*apply)(const Place&);
};

bool is_kind(const Place& p, StepKind kind) {
  return p.step().kind == kind;
}

bool drop(const Place& p) {
  p.plan.steps.erase(p.plan.steps.begin() + static_cast<std::ptrdiff_t>(p.at));
  return true;
}

bool swap_send_peers(const Place& p) {
  if (!is_kind(p, StepKind::kSend)) return false;
  Step* other = p.twin([&](const Step& s) { return s.src.chunk != p.step().src.chunk; });
  if (other != nullptr) std::swap(other->peer, p.step().peer);
  return other != nullptr;
}

bool swap_recv_peers(const Place& p) {
  if (!is_kind(p, StepKind::kRecv)) return false;
  Step* other = p.twin([&](const Step& s) { return s.dst.chunk != p.step().dst.chunk; });
  if (other != nullptr) std::swap(other->peer, p.step().peer);
  return other != nullptr;
}

bool retarget(const Place& p) {
  if (p.step().peer < 0 || p.plan.n_ranks < 3) return false;
  const auto n = static_cast<size_t>(p.plan.n_ranks);
  const int before = p.step().peer;
  while (p.step().peer == before || p.step().peer == p.plan.rank)
    p.step().peer = static_cast<int16_t>(p.dice.roll(n));
  return true;
}

bool reduce_twice(const Place& p) {
  if (!is_kind(p, StepKind::kReduce) && !is_kind(p, StepKind::kDecodeAccumulate)) return false;
  p.plan.steps.insert(p.plan.steps.begin() + static_cast<std::ptrdiff_t>(p.at), Step(p.step()));
  return true;
}

bool duplicate_message(const Place& p) {
  if (p.step().peer < 0) return false;
  p.plan.steps.insert(p.plan.steps.begin() + static_cast<std::ptrdiff_t>(p.at), Step(p.step()));
  return true;
}

/// The step happens a round later than its partner expects, which waits for ever: two ranks doing so are a
/// cycle.
bool delay_message(const Place& p) {
  if (p.step().peer < 0) return false;
  Step late = p.step();
  ++late.round;
  drop(p);
  auto after = p.plan.steps.begin();
  while (after != p.plan.steps.end() && after->round <= late.round) ++after;
  p.plan.steps.insert(after, late);
  for (Plan& plan : p.plans) plan.n_rounds = std::max(plan.n_rounds, late.round + 1);
  return true;
}

bool is_users(const Ref& ref) {
  return ref.buffer == Buffer::kInput || ref.buffer == Buffer::kOutput;
}

bool other_chunk(const Place& p) {
  if (p.plan.n_chunks < 2) return false;
  Ref& ref = is_kind(p, StepKind::kSend) || p.dice.roll(2) == 0 ? p.step().src : p.step().dst;
  if (p.step().peer >= 0 && &ref == &p.step().src && !is_kind(p, StepKind::kSend)) return false;
  if (ref.n_chunks != 1) return false;
  const bool is_free_label = p.plan.collective == Collective::kAllToAll &&
                             (ref.buffer == Buffer::kWire || (!p.plan.uneven && !is_users(ref)));
  if (is_free_label) return false;
  ref.chunk = static_cast<int16_t>(
      (ref.chunk + 1 + static_cast<int>(p.dice.roll(static_cast<size_t>(p.plan.n_chunks) - 1))) %
      p.plan.n_chunks);
  return true;
}

/// Whether something that other ranks sent was written to the memory before.
bool holds_foreign(const Place& p, const Ref& memory) {
  return std::any_of(
      p.plan.steps.begin(), p.plan.steps.begin() + static_cast<ptrdiff_t>(p.at), [&](const Step& step) {
        const Ref& dst = step.dst;
        return has_dst(step.kind) && step.kind != StepKind::kCopy && dst.buffer == memory.buffer &&
               dst.chunk < memory.chunk + memory.n_chunks && memory.chunk < dst.chunk + dst.n_chunks;
      });
}

bool send_own_share_instead_of_sum(const Place& p) {
  if (p.plan.collective != Collective::kAllReduce || !is_kind(p, StepKind::kSend)) return false;
  if (p.step().src.buffer != Buffer::kOutput || !holds_foreign(p, p.step().src)) return false;
  p.step().src.buffer = Buffer::kInput;
  return true;
}

/// The head of a reduction overwrites; behind its second operand it wipes that one out.
bool head_after_operand(const Place& p) {
  if (!is_kind(p, StepKind::kRecv) && !is_kind(p, StepKind::kCopy)) return false;
  if (reduction_end(p.plan.steps, p.at) < p.at + 2) return false;
  std::swap(p.plan.steps[p.at], p.plan.steps[p.at + 1]);
  return true;
}

bool overwrite_instead_of_reduce(const Place& p) {
  if (is_kind(p, StepKind::kRecvReduce))
    p.step().kind = StepKind::kRecv;
  else if (is_kind(p, StepKind::kReduce))
    p.step().kind = StepKind::kCopy;
  else if (is_kind(p, StepKind::kDecodeAccumulate))
    p.step().kind = StepKind::kDecode;
  else
    return false;
  return true;
}

bool reduce_instead_of_receive(const Place& p) {
  if (!is_kind(p, StepKind::kRecv) || p.step().dst.n_chunks == 0) return false;
  p.step().kind = StepKind::kRecvReduce;
  return true;
}

bool no_such_peer(const Place& p) {
  if (p.step().peer < 0) return false;
  p.step().peer = static_cast<int16_t>(p.dice.roll(2) == 0 ? p.plan.n_ranks : p.plan.rank);
  return true;
}

bool other_slot(const Place& p) {
  Ref& ref = p.dice.roll(2) == 0 ? p.step().src : p.step().dst;
  const int n_slots = ref.buffer == Buffer::kScratch ? p.plan.n_scratch : p.plan.n_wire;
  const bool has_slot = ref.buffer == Buffer::kScratch || ref.buffer == Buffer::kWire;
  if (!has_slot || n_slots < 2 || ref.n_chunks != 1) return false;
  ref.slot = static_cast<int16_t>((ref.slot + 1) % n_slots);
  return true;
}

bool write_input(const Place& p) {
  if (is_kind(p, StepKind::kSend) || p.step().dst.n_chunks == 0) return false;
  p.step().dst = {Buffer::kInput, p.step().dst.chunk, p.step().dst.n_chunks};
  return true;
}

constexpr Mutation kMutations[] = {
    {"drop", drop},
    {"swap_send_peers", swap_send_peers},
    {"swap_recv_peers", swap_recv_peers},
    {"retarget", retarget},
    {"reduce_twice", reduce_twice},
    {"duplicate_message", duplicate_message},
    {"delay_message", delay_message},
    {"other_chunk", other_chunk},
    {"send_own_share_instead_of_sum", send_own_share_instead_of_sum},
    {"head_after_operand", head_after_operand},
    {"overwrite_instead_of_reduce", overwrite_instead_of_reduce},
    {"reduce_instead_of_receive", reduce_instead_of_receive},
    {"no_such_peer", no_such_peer},
    {"other_slot", other_slot},
    {"write_input", write_input},
};

/// The plans of a random collective and algorithm in a world of 2 to 9 on one host, or of several hosts.
std::vector<Plan> random_plans(Dice& dice) {
  TestWorld world{.n_ranks = 2 + static_cast<int>(dice.roll(8))};
  if (dice.roll(4) == 0) {
    world.hosts = kHosts[dice.roll(kHosts.size())];
    world.n_ranks = static_cast<int>(world.hosts.size());
  }
  world.uneven = dice.roll(3) == 0;
  std::vector<std::pair<const Algorithm*, Collective>> pairs;
  for (const Algorithm& a : algorithms()) {
    const bool is_wanted = world.hosts.empty() || a.name == "hierarchical";
    for (int c = 0; is_wanted && c < kNumCollectives; ++c) {
      world.collective = static_cast<Collective>(c);
      if (supports(a, world)) pairs.emplace_back(&a, world.collective);
    }
  }
  if (pairs.empty()) return {};
  const Algorithm* algorithm = nullptr;
  std::tie(algorithm, world.collective) = pairs[dice.roll(pairs.size())];
  if (has_root(world.collective))
    world.root = static_cast<int>(dice.roll(static_cast<size_t>(world.n_ranks)));
  world.in_place = static_cast<InPlace>(dice.roll(3));
  const bool can_encode =
      algorithm->can_encode() && world.collective != Collective::kBarrier && !world.uneven;
  world.encoded = can_encode && dice.roll(2) == 0;
  if (!supports(*algorithm, world)) world.encoded = false;
  return plans_of(*algorithm, world);
}

TEST(Mutation, EveryBreakOfAPlanIsCaught) {
  std::map<std::string_view, int> n_applied;
  for (uint32_t seed = 0; seed < 20000; ++seed) {
    Dice dice(seed);
    std::vector<Plan> plans = random_plans(dice);
    if (plans.empty()) continue;
    Plan& plan = plans[dice.roll(plans.size())];
    if (plan.steps.empty()) continue;
    const size_t at = dice.roll(plan.steps.size());
    const Mutation& mutation = kMutations[dice.roll(std::size(kMutations))];
    const Plan before = plan;
    if (!mutation.apply({plans, plan, at, dice})) continue;
    ++n_applied[mutation.name];
    const Status status = verify(plans);
    EXPECT_FALSE(status.ok()) << "seed " << seed << ": " << mutation.name << " of step " << at << " (round "
                              << before.steps[at].round << ", " << to_string(before.steps[at]) << ") in\n"
                              << to_string(before);
    if (!status.ok()) {
      EXPECT_EQ(status.error().code, Code::kInternal);
      EXPECT_GE(status.error().rank, 0);
    }
  }
  for (const Mutation& mutation : kMutations) EXPECT_GT(n_applied[mutation.name], 20) << mutation.name;
}

}  // namespace
}  // namespace tern
