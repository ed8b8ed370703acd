#include "runtime/plan/simulate_cluster.h"

#include <cmath>

#include "runtime/plan/simulate_fabric.h"
#include "runtime/plan/simulate_loop.h"

namespace tern {

namespace {

using simulation::CompiledPlans;
using simulation::FoldedPlans;
using simulation::Traffic;
using simulation::WorkCounts;

CostModel speeds_of(const Cluster& cluster) {
  const ClusterDevice& device = cluster.device;
  CostModel model;
  model.copy_beta = 1 / device.copy_bytes_per_s;
  model.reduce_beta = 1 / device.reduce_bytes_per_s;
  model.encode_beta = 1 / device.encode_bytes_per_s;
  model.decode_beta = 1 / device.decode_bytes_per_s;
  model.round_overhead = cluster.round_overhead;
  return model;
}

// Turns chunks into bytes and seconds.
class Prices {
 public:
  Prices(const Plan& frame, const ClusterCall& call, const Cluster& cluster)
      : cluster_(cluster),
        model_(speeds_of(cluster)),
        n_segments_(static_cast<int>(n_segments(frame, {call.n_bytes, call.segment_bytes}))),
        chunk_bytes_(static_cast<double>(call.n_bytes) / frame.n_chunks / n_segments_),
        wire_ratio_(call.wire_ratio) {}

  int segments() const { return n_segments_; }
  double bytes(int n_chunks, bool encoded) const {
    return n_chunks * chunk_bytes_ * (encoded ? wire_ratio_ : 1);
  }
  double work(const WorkCounts& counts) const {
    double seconds = 0;
    for (size_t w = 0; w < counts.size(); ++w)
      seconds += counts[w] * chunk_bytes_ * beta_of(static_cast<simulation::Work>(w), model_);
    return seconds;
  }
  double entry(int n_sends) const { return cluster_.round_overhead + n_sends * cluster_.message_overhead; }
  double received(int n) const { return n * cluster_.message_overhead; }

 private:
  const Cluster& cluster_;
  CostModel model_;
  int n_segments_;
  double chunk_bytes_;
  double wire_ratio_;
};

Traffic traffic_of(const FoldedPlans& plans, const Prices& prices, const Cluster& cluster) {
  Traffic traffic;
  for (const FoldedPlans::Message& m : plans.messages) {
    const double n_senders = plans.classes[static_cast<size_t>(m.from)].n_ranks;
    const int level = plans.paths[static_cast<size_t>(m.path)].level;
    traffic.flows.push_back({.bytes = prices.bytes(m.n_chunks, m.encoded),
                             .n_total = n_senders * m.n_per_sender,
                             .path = m.path,
                             .lane = m.from * (cluster.n_levels() + 1) + level,
                             .round = m.round});
  }
  traffic.n_lanes = static_cast<int>(plans.classes.size()) * (cluster.n_levels() + 1);
  for (const FoldedPlans::Path& path : plans.paths) traffic.paths.push_back({path.alpha, path.links});
  for (const FoldedPlans::LinkClass& links : plans.links) {
    traffic.bytes_per_s.push_back(cluster.bytes_per_s(links.example));
    traffic.per_link.push_back(1.0 / links.n_links);
  }
  return traffic;
}

CompiledPlans compile(const FoldedPlans& plans, const Prices& prices) {
  CompiledPlans compiled;
  for (const FoldedPlans::Message& m : plans.messages)
    compiled.messages.push_back({.from = m.from, .to = m.to, .transfer = 0, .receiver_reads = false});
  for (const FoldedPlans::Class& c : plans.classes) {
    simulation::Program& program = compiled.programs.emplace_back();
    for (const FoldedPlans::Op& op : c.ops)
      program.ops.push_back({op.kind, op.message, prices.work(op.work) + prices.received(op.n_received)});
    program.round_begin = c.round_begin;
    int n_messages = 0;
    for (const int n : c.n_sends) {
      program.entry.push_back(prices.entry(n));
      n_messages += n;
    }
    compiled.totals.n_messages = std::max(compiled.totals.n_messages, n_messages * prices.segments());
  }
  std::vector<double> sent(plans.classes.size(), 0);
  for (const FoldedPlans::Message& m : plans.messages)
    sent[static_cast<size_t>(m.from)] += m.n_per_sender * prices.bytes(m.n_chunks, m.encoded);
  for (const double bytes : sent)
    compiled.totals.bytes_on_wire_per_rank = std::max(
        compiled.totals.bytes_on_wire_per_rank, static_cast<size_t>(std::llround(bytes * prices.segments())));
  return compiled;
}

// Bytes of one link of each class in one segment.
std::vector<double> bytes_of_links(const Traffic& traffic) {
  std::vector<double> bytes(traffic.per_link.size(), 0);
  for (const Traffic::Flow& flow : traffic.flows)
    for (const int l : traffic.paths[static_cast<size_t>(flow.path)].links)
      bytes[static_cast<size_t>(l)] += flow.bytes * flow.n_total * traffic.per_link[static_cast<size_t>(l)];
  return bytes;
}

std::vector<LinkUse> uses_of(const FoldedPlans& plans, const Traffic& traffic, const Cluster& cluster,
                             int n_segments) {
  std::vector<LinkUse> uses(static_cast<size_t>(cluster.n_levels()));
  for (size_t level = 0; level < uses.size(); ++level) uses[level].level = static_cast<int>(level);
  const std::vector<double> bytes = bytes_of_links(traffic);
  for (size_t l = 0; l < bytes.size(); ++l) {
    const FoldedPlans::LinkClass& links = plans.links[l];
    LinkUse& use = uses[static_cast<size_t>(cluster.level_of_link(links.example))];
    const double n = bytes[l] * n_segments;
    const bool is_first = use.n_links == 0;
    use.n_links += links.n_links;
    use.bytes += n * links.n_links;
    if (!is_first && n <= use.busiest_bytes) continue;
    use.busiest_bytes = n;
    use.busiest_seconds = n / traffic.bytes_per_s[l];
    use.busiest = links.example;
  }
  return uses;
}

}  // namespace

ClusterPrediction simulate(const FoldedPlans& plans, const ClusterCall& call, const Cluster& cluster) {
  const Prices prices(plans.frame, call, cluster);
  const Traffic traffic = traffic_of(plans, prices, cluster);
  CompiledPlans compiled = compile(plans, prices);
  ClusterPrediction prediction;
  prediction.call = compiled.totals;
  prediction.n_classes = static_cast<int>(plans.classes.size());
  prediction.links = uses_of(plans, traffic, cluster, prices.segments());
  double longest = 0;
  for (const LinkUse& use : prediction.links) {
    if (use.busiest_seconds <= longest) continue;
    longest = use.busiest_seconds;
    prediction.limiting_level = use.level;
  }
  for (const FoldedPlans::Class& c : plans.classes) {
    double work = 0;
    for (const FoldedPlans::Op& op : c.ops) work += prices.work(op.work);
    prediction.busiest_work_seconds = std::max(prediction.busiest_work_seconds, work * prices.segments());
  }
  const int n_rounds = plans.frame.n_rounds;
  if (n_rounds == 0) return prediction;
  const auto n_classes = static_cast<int>(plans.classes.size());
  prediction.call.seconds = simulation::seconds_of_segments(n_rounds, prices.segments(), [&](int n) {
    return simulation::EventLoop(compiled, n_rounds, n, simulation::Cores(n_classes, CostModel{}),
                                 simulation::Fabric(traffic))
        .run();
  });
  return prediction;
}

double least_seconds(const Plan& plan, const ClusterCall& call, const Cluster& cluster) {
  constexpr double kRounding = 1 - 1e-9;
  const Prices prices(plan, call, cluster);
  simulation::RankRounds rounds;
  rounds.read(plan, true, [&](int peer) { return cluster.path(peer, plan.rank).alpha; });
  std::vector<double> alpha(static_cast<size_t>(plan.n_rounds), 0);  // a round lasts until its sends arrived
  std::vector<std::pair<int, double>> links;                         // and the seconds they are busy
  double overhead = 0;
  for (const simulation::RankRounds::Message& m : rounds.messages) {
    const bool is_send = m.phase < 0;
    const ClusterPath path = is_send ? cluster.path(plan.rank, m.peer) : cluster.path(m.peer, plan.rank);
    if (is_send) {
      double& longest = alpha[static_cast<size_t>(m.round)];
      longest = std::max(longest, path.alpha);
    }
    overhead += prices.received(1);
    for (const int l : path.span()) {
      const double busy = prices.bytes(m.n_chunks, m.encoded) * prices.segments() / cluster.bytes_per_s(l);
      auto at = std::find_if(links.begin(), links.end(), [&](const auto& entry) { return entry.first == l; });
      if (at == links.end()) at = links.insert(at, {l, 0.0});
      at->second += busy;
    }
  }
  double least = 0;
  for (const auto& [link, busy] : links) least = std::max(least, busy);
  double latency = 0;
  for (const double a : alpha) latency += a;
  double work = overhead;
  for (const auto& phase : rounds.phases) work += prices.work(phase.work);
  return kRounding * std::max({least, latency, work * prices.segments()});
}

}  // namespace tern
