#include "runtime/plan/simulate.h"

#include "runtime/plan/simulate_loop.h"

namespace tern {

namespace simulation {

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

}  // namespace simulation

namespace {

using simulation::Message;

// A link for every pair of ranks, and at every rank a port that sends and one that receives.
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

}  // namespace

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
                                 Ports(compiled.messages, plans.size()))
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
