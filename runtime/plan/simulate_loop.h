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

/// Runs compiled plans over a Network (Ports or Fabric), which says how long bytes take:
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
