// Calls of several contenders measured in turns by all ranks of a communicator.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/communicator/communicator.h"

namespace tern::bench {

/// One thing that all ranks do together.
struct Contender {
  std::string name;
  std::function<Status()> call;
  int n_iters = 1;
  std::vector<double> seconds = {};  ///< per call, one of each turn: the slowest rank's

  double median() const;
};

struct Turns {
  int repetitions = 7;
  double batch_seconds = 0.01;  ///< length of a contender's turn
};

/// Fills `seconds` of all contenders, which take turns that begin with another one each time. Collective.
Status measure_in_turns(Communicator& comm, std::span<Contender> contenders, const Turns& turns);

}  // namespace tern::bench
