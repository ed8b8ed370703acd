// Links that nobody shares, and ports that take messages in turn.
#pragma once

#include <algorithm>

#include "runtime/plan/program.h"

namespace tern::simulation {

/// A Network of EventLoop: a link for every pair of ranks, at every rank a port that sends and one that
/// receives.
class Ports {
 public:
  static constexpr bool kSharesLinks = false;
  Ports(std::span<const Message> messages, size_t n_ranks) : messages_(messages), free_(n_ranks) {}

  // The port serves sends in their order, posted receive or not, so that one slow receiver does not stop the
  // others.
  double send(int idx, double now) {
    const Message& message = messages_[static_cast<size_t>(idx)];
    double& port = free_[static_cast<size_t>(message.from)].send;
    const double start = std::max(now, port);
    port = start + message.transfer;
    return start;
  }
  double take(int idx, double now) {
    const Message& message = messages_[static_cast<size_t>(idx)];
    double& port = free_[static_cast<size_t>(message.to)].recv;
    port = std::max(now, port) + message.transfer;
    return port;
  }

 private:
  struct Free {
    double send = 0, recv = 0;  // s
  };
  std::span<const Message> messages_;
  std::vector<Free> free_;  // by rank
};

}  // namespace tern::simulation
