// The planner's simulator: links per pair of ranks.
#include "runtime/plan/simulate.h"

#include "runtime/plan/simulate_loop.h"
#include "runtime/plan/simulate_ports.h"

namespace tern {

size_t n_segments(const Plan& plan, const RunShape& shape) {
  const auto n = static_cast<size_t>(plan.n_chunks);
  const size_t largest_chunk = (shape.n_bytes + n - 1) / n;
  if (shape.segment_bytes == 0 || largest_chunk <= shape.segment_bytes || must_stay_whole(plan)) return 1;
  return (largest_chunk + shape.segment_bytes - 1) / shape.segment_bytes;
}

Prediction simulate(std::span<const Plan> plans, const RunShape& shape, const CostModel& model) {
  simulation::CompiledPlans compiled = simulation::compile_plans(plans, shape, model);
  Prediction prediction = compiled.totals;
  const int n_rounds = plans[0].n_rounds;
  if (n_rounds == 0) return prediction;
  const int n_ranks = static_cast<int>(plans.size());
  const auto run = [&](int segments) {
    return simulation::EventLoop(compiled, n_rounds, segments, simulation::Cores(n_ranks, model),
                                 simulation::Ports(compiled.messages, plans.size()))
        .run();
  };
  const auto all = static_cast<int>(n_segments(plans[0], shape));
  prediction.seconds = simulation::seconds_of_segments(n_rounds, all, run);
  return prediction;
}

double least_seconds(std::span<const Plan> plans, const RunShape& shape, const CostModel& model) {
  constexpr double kRounding = 1 - 1e-9;  // the event loop adds the same numbers up in another order
  const simulation::CompiledPlans compiled = simulation::compile_plans(plans, shape, model);
  return kRounding * simulation::busiest_seconds(compiled, model) *
         static_cast<double>(n_segments(plans[0], shape));
}

}  // namespace tern
