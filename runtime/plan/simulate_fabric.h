// Links that flows share: max-min fair rates, recomputed when a flow starts or ends.
#pragma once

#include <deque>

#include "runtime/plan/simulate_fold.h"

namespace tern::simulation {

/// The messages of a folded plan with their bytes: what does not change while they run.
struct Traffic {
  struct Flow {
    double bytes = 0;    ///< of one message and segment
    double n_total = 0;  ///< equal messages in the world
    int path = 0;
    int lane = 0;   ///< of its sender's; see Fabric
    int round = 0;  ///< of the plan
  };
  struct Path {
    double alpha = 0;
    std::vector<int> links;  ///< classes of links
  };
  std::vector<Flow> flows;  ///< by message
  std::vector<Path> paths;
  std::vector<double> bytes_per_s;  ///< by class of links, of one
  std::vector<double> per_link;     ///< by class of links: 1 / its number of links
  int n_lanes = 0;
};

/// A Network of EventLoop. A rank sends segments one after another: the messages of one round and segment
/// together, those of the next once they are there; for each level of its links there is such a lane. All
/// messages that are on the way get rates such that none can be faster without a slower one becoming slower.
/// Source: max-min fairness by progressive filling, Bertsekas & Gallager, Data Networks, 1992.
class Fabric {
 public:
  static constexpr bool kSharesLinks = true;
  explicit Fabric(const Traffic& traffic)
      : traffic_(&traffic),
        state_(traffic.flows.size()),
        left_(traffic.per_link.size()),
        load_(traffic.per_link.size()),
        n_open_(traffic.per_link.size(), 0),
        lanes_(static_cast<size_t>(traffic.n_lanes)) {}

  double send(int message, double now) {
    return now + traffic_->paths[static_cast<size_t>(flow(message).path)].alpha;
  }
  double take(int message, double now);
  double next_end(double now);
  const std::vector<int>& advance(double to);

 private:
  struct State {
    double left = 0;  // bytes
    double rate = 0;  // bytes/s; 0: not set yet
  };
  const Traffic::Flow& flow(int message) const { return traffic_->flows[static_cast<size_t>(message)]; }
  std::span<const int> links(int message) const {
    return traffic_->paths[static_cast<size_t>(flow(message).path)].links;
  }
  // What a rank has on the way, and what waits for that, over links of one level.
  struct Lane {
    int n_active = 0;
    int round = 0;  // of those
    std::deque<int> waiting;
  };
  void start(int message);
  void end(int message);
  void settle(double now);
  void share();
  double open_links();
  void freeze(double rate);

  const Traffic* traffic_;
  std::vector<State> state_;  // by message
  std::vector<int> active_;   // messages on the way
  std::vector<int> ended_;
  std::vector<int> open_;     // while sharing: messages without a rate
  std::vector<int> touched_;  // while sharing: links with such messages
  std::vector<double> left_;  // while sharing: bytes/s that a link has left
  std::vector<double> load_;  // while sharing: messages without a rate that pass a link
  std::vector<int> n_open_;   // the same, classes of them
  std::vector<Lane> lanes_;
  double settled_ = 0;  // time up to which `left` holds
  double next_ = kNever;
  bool is_stale_ = false;
};

}  // namespace tern::simulation
