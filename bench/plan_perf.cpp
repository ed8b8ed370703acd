// How good the planner's choices are, measured: every algorithm that can run a call beside the one chosen, in
// turns within one run.
//
//   mpirun -n 4 plan_perf                          ranks as processes (or torchrun, srun)
//
// regret: time of the chosen algorithm over that of the fastest, less one. Then what users rely on without
// asking: all_reduce costs no more than reduce_scatter + all_gather, a barrier no more than a 4-byte
// all_reduce, more bytes no less time.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/flags.h"
#include "bench/perf_collective.h"
#include "runtime/base/output.h"
#include "runtime/base/size.h"
#include "runtime/communicator/communicator.h"
#include "runtime/plan/registry.h"

namespace tern::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string min = "4";
  std::string max = "64M";
  int factor = 16;
  int repetitions = 7;
  double batch_seconds = 0.01;
  std::vector<std::string> collectives = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                          "alltoall"};
  std::string json_file;
};

/// One contender of a row: an algorithm, or "" for the planner's choice.
struct Entry {
  std::string algorithm;
  int n_iters = 1;
  std::vector<double> seconds = {};

  double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

class Bench {
 public:
  Bench(Communicator& comm, const Flags& flags, size_t most_bytes)
      : comm_(comm), flags_(flags), most_bytes_(most_bytes) {}

  Status run() {
    TERN_ASSIGN(send_, comm_.allocate(most_bytes_ + 4096));
    TERN_ASSIGN(recv_, comm_.allocate(most_bytes_ + 4096));
    TERN_ASSIGN(const size_t least, parse_size(flags_.min));
    say(fmt::format("# {} ranks; us per call, median of {} interleaved repetitions\n", comm_.size(),
                    flags_.repetitions));
    say(fmt::format("{:<15} {:>8}  {:<18} {:>10} {:>10}  {:<18} {:>10} {:>7}\n", "collective", "size",
                    "chosen", "us", "predicted", "fastest", "us", "regret"));
    for (const std::string& name : flags_.collectives) {
      TERN_ASSIGN(const PerfCollective* row, find_perf_collective(name));
      for (size_t n = least; n <= most_bytes_; n *= static_cast<size_t>(flags_.factor))
        TERN_TRY(regret(*row, n));
    }
    say(fmt::format("# worst regret {:.0f} %, median {:.0f} %\n", 100 * worst_, 100 * median_regret()));
    TERN_TRY(shapes(least));
    return write();
  }

 private:
  void say(const std::string& text) const {
    if (comm_.rank() == 0) fmt::print("{}", text);
    std::fflush(stdout);
  }

  Operation operation(const PerfCollective& row, size_t n_bytes, std::string_view algorithm) {
    const PerfShape shape = {.count = count_for(row, n_bytes, Dtype::kFloat32, comm_.size()),
                             .rank = comm_.rank(),
                             .n_ranks = comm_.size()};
    std::vector<Operation> one;
    row.append({.send = {send_.data(), row.n_send(shape), Dtype::kFloat32},
                .recv = {recv_.data(), row.n_recv(shape), Dtype::kFloat32},
                .options = {.algorithm = algorithm}},
               one);
    return one.front();
  }

  /// Seconds per call of a batch: the slowest rank's.
  Result<double> time(const Operation& operation, int n_iters) {
    TERN_TRY(comm_.barrier());
    const auto begun = Clock::now();
    for (int i = 0; i < n_iters; ++i) TERN_TRY(comm_.run(operation));
    double seconds = seconds_since(begun) / n_iters;
    TERN_TRY(
        comm_.all_reduce(std::span<const double>(&seconds, 1), std::span<double>(&seconds, 1), Op::kMax));
    return seconds;
  }

  /// Fills `entries` in turns; `make` gives the operation of an entry.
  template <class Make>
  Status measure(std::vector<Entry>& entries, const Make& make) {
    for (Entry& entry : entries) {
      TERN_TRY(time(make(entry), 1));  // plans are made here
      TERN_ASSIGN(const double once, time(make(entry), 3));
      entry.n_iters = static_cast<int>(std::clamp(flags_.batch_seconds / std::max(once, 1e-9), 1.0, 2000.0));
    }
    for (int turn = 0; turn < flags_.repetitions; ++turn) {
      for (size_t i = 0; i < entries.size(); ++i) {
        Entry& entry = entries[(i + static_cast<size_t>(turn)) % entries.size()];
        TERN_ASSIGN(const double seconds, time(make(entry), entry.n_iters));
        entry.seconds.push_back(seconds);
      }
    }
    return {};
  }

  Status regret(const PerfCollective& row, size_t n_bytes) {
    if (count_for(row, n_bytes, Dtype::kFloat32, comm_.size()) == 0) return {};
    std::vector<Entry> entries = {{.algorithm = ""}};
    for (const Algorithm& algorithm : algorithms())
      if (algorithm.supports({.collective = row.collective, .n_ranks = comm_.size()}))
        entries.push_back({.algorithm = std::string(algorithm.name)});
    TERN_TRY(measure(entries, [&](const Entry& e) { return operation(row, n_bytes, e.algorithm); }));
    TERN_TRY(comm_.run(operation(row, n_bytes, "")));
    const CallReport chosen = comm_.last_report();
    const auto best =
        std::min_element(entries.begin() + 1, entries.end(),
                         [](const Entry& a, const Entry& b) { return a.median() < b.median(); });
    // The chosen algorithm was measured twice, by its name and as the choice: the better one is its time.
    double time = entries.front().median();
    for (const Entry& e : entries)
      if (e.algorithm == chosen.algorithm) time = std::min(time, e.median());
    const double regret = std::max(0.0, time / std::min(time, best->median()) - 1);
    regrets_.push_back(regret);
    worst_ = std::max(worst_, regret);
    say(fmt::format("{:<15} {:>8}  {:<18} {:>10.2f} {:>10.2f}  {:<18} {:>10.2f} {:>6.0f}%\n", row.name,
                    format_size(n_bytes), chosen.algorithm, time * 1e6, chosen.predicted_seconds * 1e6,
                    best->algorithm, best->median() * 1e6, 100 * regret));
    Json timed = Json::object();
    for (const Entry& e : entries) timed[e.algorithm.empty() ? "(chosen)" : e.algorithm] = e.median() * 1e6;
    rows_.push_back({{"collective", row.name},
                     {"bytes", n_bytes},
                     {"ranks", comm_.size()},
                     {"chosen", chosen.algorithm},
                     {"predicted_us", chosen.predicted_seconds * 1e6},
                     {"us", std::move(timed)},
                     {"regret", regret}});
    return {};
  }

  double median_regret() const {
    if (regrets_.empty()) return 0;
    std::vector<double> sorted = regrets_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

  /// What must hold between calls.
  Status shapes(size_t least) {
    const PerfCollective& reduce_scatter = **find_perf_collective("reduce_scatter");
    const PerfCollective& all_gather = **find_perf_collective("all_gather");
    const PerfCollective& all_reduce = **find_perf_collective("all_reduce");
    say("# all_reduce / (reduce_scatter + all_gather); barrier / 4-byte all_reduce\n");
    for (size_t n = std::max<size_t>(least, 4096); n <= most_bytes_;
         n *= static_cast<size_t>(flags_.factor)) {
      std::vector<Entry> entries = {{.algorithm = "all_reduce"}, {.algorithm = "rs"}, {.algorithm = "ag"}};
      TERN_TRY(measure(entries, [&](const Entry& e) {
        const PerfCollective& row = e.algorithm == "rs"   ? reduce_scatter
                                    : e.algorithm == "ag" ? all_gather
                                                          : all_reduce;
        return operation(row, n, "");
      }));
      say(fmt::format("all_reduce      {:>8}  {:.2f}\n", format_size(n),
                      entries[0].median() / (entries[1].median() + entries[2].median())));
    }
    std::vector<Entry> entries = {{.algorithm = "barrier"}, {.algorithm = "all_reduce"}};
    TERN_TRY(measure(entries, [&](const Entry& e) {
      return e.algorithm == "barrier" ? ops::barrier() : operation(all_reduce, 4, "");
    }));
    say(fmt::format("barrier               4  {:.2f}\n", entries[0].median() / entries[1].median()));
    return {};
  }

  Status write() const {
    if (flags_.json_file.empty() || comm_.rank() != 0) return {};
    std::ofstream file(flags_.json_file);
    file << Json{{"rows", rows_}, {"worst_regret", worst_}, {"median_regret", median_regret()}}.dump(1)
         << "\n";
    if (!file.flush()) return error(Code::kIo, "cannot write {}", flags_.json_file);
    return {};
  }

  Communicator& comm_;
  const Flags& flags_;
  size_t most_bytes_;
  Allocation send_, recv_;
  std::vector<double> regrets_;
  double worst_ = 0;
  Json rows_ = Json::array();
};

Status run(const Flags& flags) {
  TERN_ASSIGN(const size_t most_bytes, parse_size(flags.max));
  TERN_ASSIGN(const Config config, Config::from_environment());
  TERN_ASSIGN(const World world, World::from_environment(config));
  TERN_ASSIGN(Communicator comm, Communicator::create(world));
  TERN_TRY(Bench(comm, flags, most_bytes).run());
  world.store->leave();
  return {};
}

int main_of(std::span<const char* const> args) {
  Flags flags;
  CLI::App app("The planner's choices beside all algorithms, measured in turns.", "plan_perf");
  prepare_flags(app);
  app.add_option("--min", flags.min, "smallest size in bytes of the whole vector");
  app.add_option("--max", flags.max, "largest size");
  app.add_option("--factor", flags.factor, "factor between sizes")->check(CLI::Range(2, 1 << 20));
  app.add_option("--repetitions", flags.repetitions, "rounds over all algorithms; the median counts")
      ->check(CLI::Range(1, 1000));
  app.add_option("--batch-seconds", flags.batch_seconds, "length of an algorithm's turn in a round")
      ->check(CLI::Range(0.0001, 60.0));
  app.add_option("--collectives", flags.collectives, "collectives to measure")->delimiter(',');
  app.add_option("--json", flags.json_file, "the rows as JSON too");
  if (const auto status = end_at_flags(app, args)) return *status;
  const Status status = run(flags);
  if (status.ok()) return 0;
  fmt::print(stderr, "plan_perf: {}\n", status.error().message);
  return 1;
}

}  // namespace
}  // namespace tern::bench

int main(int argc, char** argv) {
  const std::vector<const char*> args(argv, argv + argc);
  return tern::guarded_main("plan_perf", [&] { return tern::bench::main_of(args); });
}
