// A plan as the cluster simulator sees it: messages, and the work that waits for them.
#pragma once

#include <array>
#include <vector>

#include "runtime/plan/program.h"

namespace tern::simulation {

/// Chunks worked on, by Work.
using WorkCounts = std::array<int32_t, kNumWorks>;

/// One rank's rounds. What a round does with one set of messages does not wait for its other messages: phases
/// of a round come in any order.
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
  };
  std::vector<Message> messages;  ///< by round
  std::vector<Phase> phases;      ///< by round

  /// Rewrites the whole value; keeps its memory. Cost: O(steps).
  void read(const Plan& plan, bool in_place);
};

}  // namespace tern::simulation
