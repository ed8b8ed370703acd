// A plan as the cluster simulator sees it: messages, and the work that waits for them.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/plan/program.h"

namespace tern::simulation {

/// Chunks worked on, by Work.
using WorkCounts = std::array<int32_t, kNumWorks>;

/// One rank's rounds. What a round does with one set of messages does not wait for its other messages. Those
/// that may be expected at the same time are waited for together: any order of theirs would tell ranks apart
/// that are alike.
struct RankRounds {
  struct Message {
    int peer = 0;
    int round = 0;
    int n_chunks = 0;
    int phase = -1;  ///< index into `phases`; -1: a send
    bool encoded = false;
  };
  /// Work of a round that starts once `n_messages` are there; 0: at once.
  struct Phase {
    int round = 0;
    int n_messages = 0;
    WorkCounts work{};
    double latency = -1;  ///< the longest of its messages', s; -1: it has none
    int n_chunks = 0;     ///< the longest of its messages
  };
  std::vector<Message> messages;  ///< by round
  std::vector<Phase> phases;      ///< by round; in it by latency, then chunks, no two alike

  /// Rewrites the whole value; keeps its memory. latency: of messages from a peer, s. Cost: O(steps).
  template <class Latency>
  void read(const Plan& plan, bool in_place, Latency latency) {
    split(plan, in_place);
    for (const Message& m : messages) {
      if (m.phase < 0) continue;
      Phase& phase = phases[static_cast<size_t>(m.phase)];
      phase.latency = std::max(phase.latency, latency(m.peer));
      phase.n_chunks = std::max(phase.n_chunks, m.n_chunks);
    }
    join();
  }

 private:
  void split(const Plan& plan, bool in_place);  // phases as the plan lists them
  void join();                                  // those of one round that expect the same
  std::vector<size_t> order_;
  std::vector<int> new_index_;
  std::vector<Phase> joined_;
};

}  // namespace tern::simulation
