// The event loop: what happens next, in order of time, over per-rank programs compiled from the plans.
#include "runtime/plan/simulate.h"

#include <algorithm>

#include "runtime/plan/program.h"

namespace tern {
namespace {

using simulation::CompiledPlans;
using simulation::kNotYet;
using simulation::Message;
using simulation::Op;
using simulation::Program;

// Once as many segments as rounds have started, each further one takes as long as the one before it; its time
// is taken from this many, and the others are not simulated.
constexpr int kSteadySegments = 16;

// Cores of nodes that have more ranks than cores; elsewhere a rank never waits for one.
class Cores {
 public:
  Cores(int n_ranks, const CostModel& model) : node_(static_cast<size_t>(n_ranks), -1) {
    if (!model.node_of) return;
    std::vector<int> n_on_node;
    for (int r = 0; r < n_ranks; ++r) {
      const int node = model.node_of(r);
      TERN_CHECK(node >= 0);
      if (node >= static_cast<int>(n_on_node.size())) n_on_node.resize(static_cast<size_t>(node) + 1, 0);
      ++n_on_node[static_cast<size_t>(node)];
      node_[static_cast<size_t>(r)] = node;
    }
    const int n_cores = std::max(1, model.cores_per_node);
    free_at_.resize(n_on_node.size());
    for (size_t n = 0; n < n_on_node.size(); ++n)
      if (n_on_node[n] > n_cores) free_at_[n].assign(static_cast<size_t>(n_cores), 0);
  }

  /// When work of `cpu` seconds that rank wants to start at `now` ends.
  double run(int rank, double now, double cpu) {
    const int node = node_[static_cast<size_t>(rank)];
    if (node < 0 || free_at_[static_cast<size_t>(node)].empty()) return now + cpu;
    auto& cores = free_at_[static_cast<size_t>(node)];
    auto first = std::min_element(cores.begin(), cores.end());
    return *first = std::max(now, *first) + cpu;
  }

 private:
  std::vector<int> node_;                     // by rank; -1: a node of its own
  std::vector<std::vector<double>> free_at_;  // by node and core; empty: enough cores
};

class EventLoop {
 public:
  EventLoop(CompiledPlans& compiled, int n_rounds, int n_segments, const CostModel& model)
      : programs_(compiled.programs),
        messages_(compiled.messages),
        n_rounds_(n_rounds),
        n_segments_(n_segments),
        overhead_(model.round_overhead),
        ranks_(programs_.size()),
        cores_(static_cast<int>(programs_.size()), model) {}
  /// The time at which the last rank ends.
  double run();

 private:
  enum class Phase : uint8_t { kEnter, kPost, kWork, kLeave };
  struct Rank {
    Phase phase = Phase::kEnter;
    int slot = 0;
    int segment = 0;  // position in the slot: its segments in order, and the ops of each one's round
    size_t op = 0;
    int waits_for = -1;  // message
    bool waits_for_sends = false;
    int n_unsent = 0;  // sends of the slot whose end is not known yet
    double sends_end = 0;
    double send_port_free = 0;
    double recv_port_free = 0;
  };
  struct Event {
    double time;
    int order;  // 0: a rank goes on; else a message whose first bytes reach its receiver
    int id;
    bool operator>(const Event& b) const {
      if (time != b.time) return time > b.time;
      return order != b.order ? order > b.order : id > b.id;
    }
  };

  void go_on(int rank, double now);
  bool enter(int rank, double now);
  void post(int rank, double now);
  bool work(int rank, double now);
  bool leave(int rank, double now);
  bool receive(int rank, const Op& op, double now);
  bool spend(int rank, double now, double cpu);
  void post_send(int message, double now);
  void post_recv(int message, double now);
  void arrive(Message& message, int idx, double now);
  void sent(int rank, double end);
  void wake(int rank, double at) { push({at, 0, rank}); }
  void push(const Event& event) {
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  int first_segment(int slot) const { return std::max(0, slot - n_rounds_ + 1); }
  int last_segment(int slot) const { return std::min(n_segments_ - 1, slot); }
  std::span<const Op> ops(int rank, int round) const {
    const Program& p = programs_[static_cast<size_t>(rank)];
    const size_t begin = p.round_begin[static_cast<size_t>(round)];
    return {p.ops.data() + begin, p.round_begin[static_cast<size_t>(round) + 1] - begin};
  }
  Rank& at(int rank) { return ranks_[static_cast<size_t>(rank)]; }

  std::span<const Program> programs_;
  std::vector<Message>& messages_;
  int n_rounds_, n_segments_;
  double overhead_;
  std::vector<Rank> ranks_;
  Cores cores_;
  std::vector<Event> heap_;
  size_t n_ended_ = 0;
  double end_ = 0;
};

double EventLoop::run() {
  for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) wake(r, 0);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const Event event = heap_.back();
    heap_.pop_back();
    if (event.order == 0)
      go_on(event.id, event.time);
    else
      arrive(messages_[static_cast<size_t>(event.id)], event.id, event.time);
  }
  TERN_CHECK(n_ended_ == ranks_.size());  // plans that pass verify() cannot get stuck
  return end_;
}

// Runs the rank until it must wait; each phase returns false when it does.
void EventLoop::go_on(int rank, double now) {
  Rank& r = at(rank);
  while (r.slot < n_rounds_ + n_segments_ - 1) {
    switch (r.phase) {
      case Phase::kEnter:
        if (!enter(rank, now)) return;
        break;
      case Phase::kPost:
        post(rank, now);
        break;
      case Phase::kWork:
        if (!work(rank, now)) return;
        break;
      case Phase::kLeave:
        if (!leave(rank, now)) return;
        break;
    }
  }
  ++n_ended_;
  end_ = std::max(end_, now);
}

bool EventLoop::enter(int rank, double now) {
  Rank& r = at(rank);
  int n_busy = 0;
  for (int s = first_segment(r.slot); s <= last_segment(r.slot); ++s)
    n_busy += !ops(rank, r.slot - s).empty();
  r.phase = Phase::kPost;
  if (n_busy > 0) return spend(rank, now, overhead_ * n_busy);
  ++r.slot;
  r.phase = Phase::kEnter;
  return true;
}

void EventLoop::post(int rank, double now) {
  Rank& r = at(rank);
  int n_sends = 0;
  for (int s = first_segment(r.slot); s <= last_segment(r.slot); ++s) {
    for (const Op& op : ops(rank, r.slot - s)) {
      if (op.message < 0) continue;
      if (op.kind == StepKind::kSend) {
        messages_[static_cast<size_t>(op.message)].order = ++n_sends;
        post_send(op.message, now);
      } else {
        post_recv(op.message, now);
      }
    }
  }
  r.n_unsent = n_sends;
  r.sends_end = now;
  r.segment = first_segment(r.slot);
  r.op = 0;
  r.phase = Phase::kWork;
}

void EventLoop::post_send(int idx, double now) {
  Message& message = messages_[static_cast<size_t>(idx)];
  message.send_posted = true;
  if (message.receiver_reads) {
    if (at(message.to).waits_for != idx) return;
    at(message.to).waits_for = -1;
    wake(message.to, now);
    return;
  }
  // The port serves sends in their order, posted receive or not, so that one slow receiver does not stop the
  // others.
  double& port = at(message.from).send_port_free;
  const double start = std::max(now, port);
  port = start + message.transfer;
  push({start, message.order, idx});
}

void EventLoop::post_recv(int idx, double now) {
  Message& message = messages_[static_cast<size_t>(idx)];
  message.recv_posted = true;
  if (message.is_at_receiver) push({now, message.order, idx});
}

// The first bytes are at the receiver, whose port takes them off the wire once it has posted a place for
// them.
void EventLoop::arrive(Message& message, int idx, double now) {
  Rank& to = at(message.to);
  message.is_at_receiver = !message.recv_posted;
  if (message.is_at_receiver) return;
  const double end = std::max(now, to.recv_port_free) + message.transfer;
  to.recv_port_free = end;
  message.send_posted = message.recv_posted = false;
  message.arrival = end;
  if (to.waits_for == idx) {
    to.waits_for = -1;
    wake(message.to, end);
  }
  sent(message.from, end);
}

void EventLoop::sent(int rank, double end) {
  Rank& r = at(rank);
  r.sends_end = std::max(r.sends_end, end);
  if (--r.n_unsent == 0 && r.waits_for_sends) {
    r.waits_for_sends = false;
    wake(rank, r.sends_end);
  }
}

bool EventLoop::work(int rank, double now) {
  Rank& r = at(rank);
  for (; r.segment <= last_segment(r.slot); ++r.segment, r.op = 0) {
    const std::span<const Op> todo = ops(rank, r.slot - r.segment);
    while (r.op < todo.size()) {
      const Op& op = todo[r.op];
      if (op.kind != StepKind::kSend && op.message >= 0) {
        if (!receive(rank, op, now)) return false;
        continue;
      }
      ++r.op;
      if (!spend(rank, now, op.cpu)) return false;
    }
  }
  r.phase = Phase::kLeave;
  return true;
}

// Moves past a receive when its bytes are there; false: the rank waits, for them or for the work on them.
bool EventLoop::receive(int rank, const Op& op, double now) {
  Rank& r = at(rank);
  Message& message = messages_[static_cast<size_t>(op.message)];
  if (message.receiver_reads ? !message.send_posted : message.arrival == kNotYet) {
    r.waits_for = op.message;
    return false;
  }
  if (message.receiver_reads) {
    message.send_posted = message.recv_posted = false;
    ++r.op;
    const double end = cores_.run(rank, now, op.cpu);
    sent(message.from, end);
    wake(rank, end);
    return false;
  }
  if (message.arrival > now) {
    wake(rank, message.arrival);
    return false;
  }
  message.arrival = kNotYet;
  ++r.op;
  return spend(rank, now, op.cpu);
}

bool EventLoop::spend(int rank, double now, double cpu) {
  if (cpu <= 0) return true;
  wake(rank, cores_.run(rank, now, cpu));
  return false;
}

bool EventLoop::leave(int rank, double now) {
  Rank& r = at(rank);
  if (r.n_unsent > 0) {
    r.waits_for_sends = true;
    return false;
  }
  if (r.sends_end > now) {
    wake(rank, r.sends_end);
    return false;
  }
  ++r.slot;
  r.phase = Phase::kEnter;
  return true;
}

}  // namespace

size_t n_segments(const Plan& plan, const RunShape& shape) {
  const auto n = static_cast<size_t>(plan.n_chunks);
  const size_t largest_chunk = (shape.n_bytes + n - 1) / n;
  if (shape.segment_bytes == 0 || largest_chunk <= shape.segment_bytes || must_stay_whole(plan)) return 1;
  return (largest_chunk + shape.segment_bytes - 1) / shape.segment_bytes;
}

Prediction simulate(std::span<const Plan> plans, const RunShape& shape, const CostModel& model) {
  simulation::CompiledPlans compiled = simulation::compile_plans(plans, shape, model);
  Prediction prediction = compiled.totals;
  const int n_rounds = plans[0].n_rounds;
  if (n_rounds == 0) return prediction;
  const auto run = [&](int segments) { return EventLoop(compiled, n_rounds, segments, model).run(); };
  const auto all = static_cast<int>(n_segments(plans[0], shape));
  const int steady = n_rounds + kSteadySegments;
  if (all <= steady + kSteadySegments) {
    prediction.seconds = run(all);
    return prediction;
  }
  const double until_steady = run(steady);
  const double after = run(steady + kSteadySegments);
  const double per_segment = (after - until_steady) / kSteadySegments;
  prediction.seconds = after + (all - steady - kSteadySegments) * per_segment;
  return prediction;
}

double least_seconds(std::span<const Plan> plans, const RunShape& shape, const CostModel& model) {
  constexpr double kRounding = 1 - 1e-9;  // the event loop adds the same numbers up in another order
  const simulation::CompiledPlans compiled = simulation::compile_plans(plans, shape, model);
  return kRounding * simulation::busiest_seconds(compiled, model) *
         static_cast<double>(n_segments(plans[0], shape));
}

}  // namespace tern
