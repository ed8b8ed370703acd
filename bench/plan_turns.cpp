#include "bench/plan_turns.h"

#include <algorithm>

#include "runtime/base/clock.h"

namespace tern::bench {
namespace {

/// Seconds per call of a batch: the slowest rank's.
Result<double> time(Communicator& comm, const Contender& contender, int n_iters) {
  TERN_TRY(comm.barrier());
  const auto begun = Clock::now();
  for (int i = 0; i < n_iters; ++i) TERN_TRY(contender.call());
  double seconds = seconds_since(begun) / n_iters;
  TERN_TRY(comm.all_reduce(std::span<const double>(&seconds, 1), std::span<double>(&seconds, 1), Op::kMax));
  return seconds;
}

}  // namespace

double Contender::median() const {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

Status measure_in_turns(Communicator& comm, std::span<Contender> contenders, const Turns& turns) {
  for (Contender& c : contenders) {
    TERN_TRY(time(comm, c, 1).status());  // plans are made here
    TERN_ASSIGN(const double once, time(comm, c, 3));
    c.n_iters = static_cast<int>(std::clamp(turns.batch_seconds / std::max(once, 1e-9), 1.0, 2000.0));
  }
  for (int turn = 0; turn < turns.repetitions; ++turn) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      Contender& c = contenders[(i + static_cast<size_t>(turn)) % contenders.size()];
      TERN_ASSIGN(const double seconds, time(comm, c, c.n_iters));
      c.seconds.push_back(seconds);
    }
  }
  return {};
}

}  // namespace tern::bench
