// Per rank: slot after slot; over all: event after event, in order of time.
#include "runtime/plan/simulate_loop.h"

#include "runtime/plan/simulate_fabric.h"
#include "runtime/plan/simulate_ports.h"

namespace tern::simulation {

Cores::Cores(int n_ranks, const CostModel& model) : node_(static_cast<size_t>(n_ranks), -1) {
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

template class EventLoop<Ports>;
template class EventLoop<Fabric>;

}  // namespace tern::simulation
