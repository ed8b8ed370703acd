// What plan_perf measures: the planner's choices, and what users rely on without asking.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/perf_collective.h"
#include "bench/plan_turns.h"
#include "runtime/communicator/planner.h"

namespace tern::bench {

struct PlanSizes {
  size_t least = 4;  ///< bytes of the whole vector
  size_t most = size_t{64} << 20;
  size_t factor = 16;
};

/// The tables of plan_perf, printed by rank 0 and kept as JSON. Buffers are from the shared heap.
///
/// Threads: one. Every member function is collective over the communicator.
class PlanBench {
 public:
  static Result<PlanBench> create(Communicator& comm, const PlanSizes& sizes, const Turns& turns);

  /// Every algorithm beside the one chosen. regret: time of the chosen one over that of the fastest, less
  /// one.
  Status regret(const std::vector<std::string>& collectives);
  /// all_reduce over reduce_scatter + all_gather; a barrier over a 4-byte all_reduce.
  Status sums();
  /// What TERN_DETERMINISTIC=1 would run, beside the free choice.
  Status determinism();
  /// Share of the time at the largest size that its bytes take at least: those that must be read and written,
  /// at the speed at which all ranks together copy memory (past the cache).
  Status limit();
  /// time(p + 1) / time(p), over communicators of the first p ranks.
  Status growth();

  nlohmann::ordered_json json() const { return json_; }

 private:
  PlanBench(Communicator& comm, const PlanSizes& sizes, const Turns& turns)
      : comm_(comm), sizes_(sizes), turns_(turns) {}

  void say(const std::string& text) const;
  Operation operation(std::string_view collective, size_t n_bytes, std::string_view algorithm = "");
  Contender contender(std::string name, const Operation& operation);
  Status regret_of(const PerfCollective& row, size_t n_bytes);
  Result<double> time_of_group(Communicator& group, const PerfCollective& row, size_t n_bytes);

  Communicator& comm_;
  PlanSizes sizes_;
  Turns turns_;
  Allocation send_, recv_;
  std::vector<double> regrets_;
  nlohmann::ordered_json json_ = nlohmann::ordered_json::object();
};

}  // namespace tern::bench
