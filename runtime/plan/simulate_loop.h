// The event loop of the simulators: what happens next, in order of time, over per-rank programs.
#pragma once

#include <algorithm>

#include "runtime/plan/program.h"

namespace tern::simulation {

/// Cores of nodes that have more ranks than cores; elsewhere a rank never waits for one.
class Cores {
 public:
  Cores(int n_ranks, const CostModel& model);
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

/// Runs compiled plans over a Network, which says how long bytes take:
///   double send(int message, double now)   a send is posted: when its first bytes are at the receiver
///   double take(int message, double now)   the receiver takes them: when the last byte is there, or kNotYet
///   static constexpr bool kSharesLinks     false: take() can always say, and the rest is not asked
///   double next_end(double now)            of transfers that take() could not time: when one ends next
///   const std::vector<int>& advance(double to)   those that end then
template <class Network>
class EventLoop {
 public:
  EventLoop(CompiledPlans& compiled, int n_rounds, int n_segments, Cores cores, Network network)
      : programs_(compiled.programs),
        messages_(compiled.messages),
        n_rounds_(n_rounds),
        n_segments_(n_segments),
        entry_(compiled.entry),
        ranks_(programs_.size()),
        cores_(std::move(cores)),
        network_(std::move(network)) {}
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
  void arrive(int message, double now);
  void received(int message, double end);
  void sent(int rank, double end);
  void wake(int rank, double at) { push({at, 0, rank}); }
  void push(const Event& event) {
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }
  int first_segment(int slot) const { return std::max(0, slot - n_rounds_ + 1); }
  int last_segment(int slot) const { return std::min(n_segments_ - 1, slot); }
  std::span<const Op> ops(int rank, int round) const {
    const Program& p = programs_[static_cast<size_t>(rank)];
    const size_t begin = p.round_begin[static_cast<size_t>(round)];
    return {p.ops.data() + begin, p.round_begin[static_cast<size_t>(round) + 1] - begin};
  }
  double entry(int rank, int round) const {
    const std::vector<double>& own = programs_[static_cast<size_t>(rank)].entry;
    return own.empty() ? entry_ : own[static_cast<size_t>(round)];
  }
  Rank& at(int rank) { return ranks_[static_cast<size_t>(rank)]; }

  std::span<const Program> programs_;
  std::vector<Message>& messages_;
  int n_rounds_, n_segments_;
  double entry_;
  std::vector<Rank> ranks_;
  Cores cores_;
  Network network_;
  std::vector<Event> heap_;
  size_t n_ended_ = 0;
  double end_ = 0;
};

template <class Network>
double EventLoop<Network>::run() {
  for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) wake(r, 0);
  double now = 0;
  for (;;) {
    // All that happens at one time happens before transfers go on: they share links with what starts now.
    if constexpr (Network::kSharesLinks) {
      while (heap_.empty() || heap_.front().time > now) {
        const double end = network_.next_end(now);
        if (end == kNever || (!heap_.empty() && heap_.front().time <= end)) break;
        now = end;
        for (const int message : network_.advance(end)) received(message, end);
      }
    }
    if (heap_.empty()) break;
    const Event event = pop();
    now = event.time;
    event.order == 0 ? go_on(event.id, now) : arrive(event.id, now);
  }
  TERN_CHECK(n_ended_ == ranks_.size());  // plans that pass verify() cannot get stuck
  return end_;
}

// Runs the rank until it must wait; each phase returns false when it does.
template <class Network>
void EventLoop<Network>::go_on(int rank, double now) {
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

template <class Network>
bool EventLoop<Network>::enter(int rank, double now) {
  Rank& r = at(rank);
  bool is_busy = false;
  double overhead = 0;
  for (int s = first_segment(r.slot); s <= last_segment(r.slot); ++s) {
    if (ops(rank, r.slot - s).empty()) continue;
    is_busy = true;
    overhead += entry(rank, r.slot - s);
  }
  r.phase = Phase::kPost;
  if (is_busy) return spend(rank, now, overhead);
  ++r.slot;
  r.phase = Phase::kEnter;
  return true;
}

template <class Network>
void EventLoop<Network>::post(int rank, double now) {
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

template <class Network>
void EventLoop<Network>::post_send(int idx, double now) {
  Message& message = messages_[static_cast<size_t>(idx)];
  message.send_posted = true;
  if (!message.receiver_reads) return push({network_.send(idx, now), message.order, idx});
  if (at(message.to).waits_for != idx) return;
  at(message.to).waits_for = -1;
  wake(message.to, now);
}

template <class Network>
void EventLoop<Network>::post_recv(int idx, double now) {
  Message& message = messages_[static_cast<size_t>(idx)];
  message.recv_posted = true;
  if (message.is_at_receiver) push({now, message.order, idx});
}

// The first bytes are at the receiver, which takes them off the wire once it has posted a place for them.
template <class Network>
void EventLoop<Network>::arrive(int idx, double now) {
  Message& message = messages_[static_cast<size_t>(idx)];
  message.is_at_receiver = !message.recv_posted;
  if (message.is_at_receiver) return;
  const double end = network_.take(idx, now);
  if (end != kNotYet) received(idx, end);
}

template <class Network>
void EventLoop<Network>::received(int idx, double end) {
  Message& message = messages_[static_cast<size_t>(idx)];
  message.send_posted = message.recv_posted = false;
  message.arrival = end;
  Rank& to = at(message.to);
  if (to.waits_for == idx) {
    to.waits_for = -1;
    wake(message.to, end);
  }
  sent(message.from, end);
}

template <class Network>
void EventLoop<Network>::sent(int rank, double end) {
  Rank& r = at(rank);
  r.sends_end = std::max(r.sends_end, end);
  if (--r.n_unsent == 0 && r.waits_for_sends) {
    r.waits_for_sends = false;
    wake(rank, r.sends_end);
  }
}

template <class Network>
bool EventLoop<Network>::work(int rank, double now) {
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
template <class Network>
bool EventLoop<Network>::receive(int rank, const Op& op, double now) {
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

template <class Network>
bool EventLoop<Network>::spend(int rank, double now, double cpu) {
  if (cpu <= 0) return true;
  wake(rank, cores_.run(rank, now, cpu));
  return false;
}

template <class Network>
bool EventLoop<Network>::leave(int rank, double now) {
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

/// Seconds that `n_segments` take, where run(n) simulates n of them. Once as many as rounds have started,
/// each further one takes as long as the one before it: its time is taken from kSteadySegments, and the
/// others are not simulated.
template <class Run>
double seconds_of_segments(int n_rounds, int n_segments, Run run) {
  constexpr int kSteadySegments = 16;
  const int steady = n_rounds + kSteadySegments;
  if (n_segments <= steady + kSteadySegments) return run(n_segments);
  const double until_steady = run(steady);
  const double after = run(steady + kSteadySegments);
  const double per_segment = (after - until_steady) / kSteadySegments;
  return after + (n_segments - steady - kSteadySegments) * per_segment;
}

}  // namespace tern::simulation
