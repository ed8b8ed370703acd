#include "bench/plan_bench.h"

#include <algorithm>
#include <cstdio>

#include "kernels/copy.h"
#include "runtime/base/size.h"
#include "runtime/communicator/calibration.h"
#include "runtime/communicator/cost.h"
#include "runtime/plan/registry.h"

namespace tern::bench {
namespace {

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Operation make(const PerfCollective& row, const PerfShape& shape, const PerfCall& buffers) {
  PerfCall call = buffers;
  call.send.n = row.n_send(shape);
  call.recv.n = row.n_recv(shape);
  std::vector<Operation> one;
  row.append(call, one);
  return one.front();
}

/// A planner that decides as this communicator's would under TERN_DETERMINISTIC=1.
Result<Planner> rank_order_planner(const Communicator& comm) {
  const World& world = comm.world();
  const std::vector<int> ranks = world.all_ranks();
  TERN_ASSIGN(const std::vector<int> cores, cores_of_hosts(world, ranks, "plan_perf"));
  TERN_ASSIGN(const Calibration speeds, calibration_of(world.config));
  return Planner({.rank = comm.rank(),
                  .n_ranks = comm.size(),
                  .model = cost_model(world, ranks, cores, speeds),
                  .rules = {},
                  .rank_order = true});
}

/// Vectors that a call of all ranks must read and write, each byte once: the inputs and the results.
double least_traffic(Collective collective, int n_ranks) {
  const double p = n_ranks;
  switch (collective) {
    case Collective::kReduceScatter:
    case Collective::kAllGather:
      return p + 1;
    case Collective::kBroadcast:
      return p;  // in place at the root
    default:
      return 2 * p;
  }
}

}  // namespace

Result<PlanBench> PlanBench::create(Communicator& comm, const PlanSizes& sizes, const Turns& turns) {
  PlanBench bench(comm, sizes, turns);
  TERN_ASSIGN(bench.send_, comm.allocate(sizes.most + 4096));
  TERN_ASSIGN(bench.recv_, comm.allocate(sizes.most + 4096));
  // Pages are there before anything is timed.
  std::fill_n(static_cast<std::byte*>(bench.send_.data()), sizes.most, std::byte{0});
  std::fill_n(static_cast<std::byte*>(bench.recv_.data()), sizes.most, std::byte{0});
  return bench;
}

void PlanBench::say(const std::string& text) const {
  if (comm_.rank() == 0) fmt::print("{}", text);
  std::fflush(stdout);
}

Operation PlanBench::operation(std::string_view collective, size_t n_bytes, std::string_view algorithm) {
  const PerfCollective& row = **find_perf_collective(collective);
  const PerfShape shape = {.count = count_for(row, n_bytes, Dtype::kFloat32, comm_.size()),
                           .rank = comm_.rank(),
                           .n_ranks = comm_.size()};
  return make(row, shape,
              {.send = {send_.data(), 0, Dtype::kFloat32},
               .recv = {recv_.data(), 0, Dtype::kFloat32},
               .options = {.algorithm = algorithm}});
}

Contender PlanBench::contender(std::string name, const Operation& operation) {
  return {.name = std::move(name), .call = [this, operation] { return comm_.run(operation); }};
}

Status PlanBench::regret(const std::vector<std::string>& collectives) {
  say(fmt::format("# {} ranks; us per call, median of {} interleaved repetitions\n", comm_.size(),
                  turns_.repetitions));
  say(fmt::format("{:<15} {:>8}  {:<20} {:>10} {:>10}  {:<20} {:>10} {:>7}\n", "collective", "size", "chosen",
                  "us", "predicted", "fastest", "us", "regret"));
  for (const std::string& name : collectives) {
    TERN_ASSIGN(const PerfCollective* row, find_perf_collective(name));
    for (size_t n = sizes_.least; n <= sizes_.most; n *= sizes_.factor) TERN_TRY(regret_of(*row, n));
  }
  const auto within = std::count_if(regrets_.begin(), regrets_.end(), [](double r) { return r <= 0.1; });
  const double worst = regrets_.empty() ? 0 : *std::max_element(regrets_.begin(), regrets_.end());
  say(fmt::format("# regret: {} of {} rows within 10 %; median {:.0f} %, worst {:.0f} %\n", within,
                  regrets_.size(), 100 * median_of(regrets_), 100 * worst));
  json_["worst_regret"] = worst;
  json_["median_regret"] = median_of(regrets_);
  return {};
}

Status PlanBench::regret_of(const PerfCollective& row, size_t n_bytes) {
  if (count_for(row, n_bytes, Dtype::kFloat32, comm_.size()) == 0) return {};
  std::vector<Contender> all = {contender("", operation(row.name, n_bytes))};
  for (const Algorithm& algorithm : algorithms())
    if (algorithm.supports({.collective = row.collective, .n_ranks = comm_.size()}))
      all.push_back(contender(std::string(algorithm.name), operation(row.name, n_bytes, algorithm.name)));
  TERN_TRY(measure_in_turns(comm_, all, turns_));
  TERN_TRY(all.front().call());
  const CallReport chosen = comm_.last_report();
  const auto best = std::min_element(all.begin() + 1, all.end(), [](const Contender& a, const Contender& b) {
    return a.median() < b.median();
  });
  // The chosen algorithm was measured twice, by its name and as the choice: the better one is its time.
  double time = all.front().median();
  for (const Contender& c : all)
    if (c.name == chosen.algorithm) time = std::min(time, c.median());
  const double regret = std::max(0.0, time / std::min(time, best->median()) - 1);
  regrets_.push_back(regret);
  say(fmt::format("{:<15} {:>8}  {:<20} {:>10.2f} {:>10.2f}  {:<20} {:>10.2f} {:>6.0f}%\n", row.name,
                  format_size(n_bytes), chosen.algorithm, time * 1e6, chosen.predicted_seconds * 1e6,
                  best->name, best->median() * 1e6, 100 * regret));
  nlohmann::ordered_json timed = nlohmann::ordered_json::object();
  for (const Contender& c : all) timed[c.name.empty() ? "(chosen)" : c.name] = c.median() * 1e6;
  json_["rows"].push_back({{"collective", row.name},
                           {"bytes", n_bytes},
                           {"ranks", comm_.size()},
                           {"chosen", chosen.algorithm},
                           {"predicted_us", chosen.predicted_seconds * 1e6},
                           {"us", std::move(timed)},
                           {"regret", regret}});
  return {};
}

Status PlanBench::sums() {
  say("# all_reduce / (reduce_scatter + all_gather)\n");
  for (size_t n = std::max<size_t>(sizes_.least, 4096); n <= sizes_.most; n *= sizes_.factor) {
    std::vector<Contender> all;
    for (const char* name : {"all_reduce", "reduce_scatter", "all_gather"})
      all.push_back(contender(name, operation(name, n)));
    TERN_TRY(measure_in_turns(comm_, all, turns_));
    const double ratio = all[0].median() / (all[1].median() + all[2].median());
    say(fmt::format("{:<15} {:>8}  {:.2f}\n", "all_reduce", format_size(n), ratio));
    json_["sums"].push_back({{"bytes", n}, {"ratio", ratio}});
  }
  std::vector<Contender> all = {contender("barrier", ops::barrier()),
                                contender("all_reduce", operation("all_reduce", 4))};
  TERN_TRY(measure_in_turns(comm_, all, turns_));
  const double ratio = all[0].median() / all[1].median();
  say(fmt::format("# barrier / 4-byte all_reduce: {:.2f}\n", ratio));
  json_["barrier"] = ratio;
  return {};
}

Status PlanBench::determinism() {
  TERN_ASSIGN(Planner planner, rank_order_planner(comm_));
  say("# TERN_DETERMINISTIC=1 / free choice\n");
  for (const char* name : {"all_reduce", "reduce_scatter"}) {
    for (size_t n = sizes_.least; n <= sizes_.most; n *= sizes_.factor) {
      const PerfCollective& row = **find_perf_collective(name);
      if (count_for(row, n, Dtype::kFloat32, comm_.size()) == 0) continue;
      TERN_ASSIGN(const Decision* decision, planner.decide({.collective = row.collective, .n_bytes = n}));
      std::vector<Contender> all = {contender("free", operation(name, n)),
                                    contender("ordered", operation(name, n, decision->algorithm))};
      TERN_TRY(measure_in_turns(comm_, all, turns_));
      const double ratio = all[1].median() / all[0].median();
      say(fmt::format("{:<15} {:>8}  {:<20} {:.2f}\n", name, format_size(n), decision->algorithm, ratio));
      json_["determinism"].push_back(
          {{"collective", name}, {"bytes", n}, {"algorithm", decision->algorithm}, {"ratio", ratio}});
    }
  }
  return {};
}

Status PlanBench::limit() {
  const size_t n = sizes_.most;
  say(fmt::format(
      "# share of the physical limit at {}: least bytes over memory / time / copy speed of all ranks "
      "together\n",
      format_size(n)));
  for (const char* name : {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "alltoall"}) {
    std::vector<Contender> all = {contender(name, operation(name, n)), {.name = "copy", .call = [&] {
                                                                          copy(recv_.data(), send_.data(), n,
                                                                               {.stream = true});
                                                                          return Status();
                                                                        }}};
    TERN_TRY(measure_in_turns(comm_, all, turns_));
    // A copy by every rank moves 2 p vectors.
    const double per_vector = all[1].median() / (2.0 * comm_.size());
    const PerfCollective& row = **find_perf_collective(name);
    const double share = least_traffic(row.collective, comm_.size()) * per_vector / all[0].median();
    const double gb_per_s = static_cast<double>(n) / per_vector / 1e9;
    say(fmt::format("{:<15} {:>10.2f} us  copies {:>6.2f} GB/s  share {:>4.0f} %\n", name,
                    all[0].median() * 1e6, gb_per_s, 100 * share));
    json_["limit"].push_back({{"collective", name},
                              {"bytes", n},
                              {"us", all[0].median() * 1e6},
                              {"copy_gb_per_s", gb_per_s},
                              {"share", share}});
  }
  return {};
}

Result<double> PlanBench::time_of_group(Communicator& group, const PerfCollective& row, size_t n_bytes) {
  const PerfShape shape = {.count = count_for(row, n_bytes, Dtype::kFloat32, group.size()),
                           .rank = group.rank(),
                           .n_ranks = group.size()};
  const Operation call = make(
      row, shape, {.send = {send_.data(), 0, Dtype::kFloat32}, .recv = {recv_.data(), 0, Dtype::kFloat32}});
  std::vector<Contender> one = {{.name = "", .call = [&] { return group.run(call); }}};
  TERN_TRY(measure_in_turns(group, one, turns_));
  return one.front().median();
}

Status PlanBench::growth() {
  say("# time(p + 1) / time(p) of all_reduce\n");
  std::vector<size_t> sizes;
  for (size_t n = sizes_.least; n <= sizes_.most; n *= sizes_.factor) sizes.push_back(n);
  std::vector<double> before(sizes.size(), 0);
  const PerfCollective& row = **find_perf_collective("all_reduce");
  for (int p = 2; p <= comm_.size(); ++p) {
    TERN_ASSIGN(Communicator group, comm_.split(comm_.rank() < p ? 0 : 1, comm_.rank()));
    std::string line = fmt::format("p = {:<3}", p);
    for (size_t i = 0; i < sizes.size(); ++i) {
      double seconds = 0;
      if (comm_.rank() < p) {
        TERN_ASSIGN(seconds, time_of_group(group, row, sizes[i]));
      }
      TERN_TRY(comm_.barrier());
      line += fmt::format("  {:>6} {:>10.2f} us", format_size(sizes[i]), seconds * 1e6);
      line += p == 2 ? fmt::format(" {:>6}", "") : fmt::format(" x{:<5.2f}", seconds / before[i]);
      if (comm_.rank() == 0)
        json_["growth"].push_back({{"ranks", p}, {"bytes", sizes[i]}, {"us", seconds * 1e6}});
      before[i] = seconds;
    }
    say(line + "\n");
  }
  return {};
}

}  // namespace tern::bench
