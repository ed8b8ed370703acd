// How good the planner's choices are, measured: every algorithm that can run a call beside the one chosen, in
// turns within one run; and what users rely on without asking.
//
//   mpirun -n 4 plan_perf                                   ranks as processes (or torchrun, srun)
//   mpirun -n 4 plan_perf --tables sums,determinism,limit
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>

#include "bench/flags.h"
#include "bench/plan_bench.h"
#include "runtime/base/output.h"
#include "runtime/base/size.h"

namespace tern::bench {
namespace {

struct Flags {
  std::string min = "4";
  std::string max = "64M";
  int factor = 16;
  Turns turns;
  std::vector<std::string> collectives = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                          "alltoall"};
  std::vector<std::string> tables = {"regret", "sums", "determinism", "limit", "growth"};
  std::string json_file;
};

Status write(const nlohmann::ordered_json& tables, const std::string& path) {
  std::ofstream file(path);
  file << tables.dump(1) << "\n";
  if (!file.flush()) return error(Code::kIo, "cannot write {}", path);
  return {};
}

Status run(const Flags& flags) {
  PlanSizes sizes{.factor = static_cast<size_t>(flags.factor)};
  TERN_ASSIGN(sizes.least, parse_size(flags.min));
  TERN_ASSIGN(sizes.most, parse_size(flags.max));
  TERN_ASSIGN(const Config config, Config::from_environment());
  TERN_ASSIGN(const World world, World::from_environment(config));
  TERN_ASSIGN(Communicator comm, Communicator::create(world));
  TERN_ASSIGN(PlanBench bench, PlanBench::create(comm, sizes, flags.turns));
  const auto wants = [&](std::string_view table) {
    return std::find(flags.tables.begin(), flags.tables.end(), table) != flags.tables.end();
  };
  if (wants("regret")) TERN_TRY(bench.regret(flags.collectives));
  if (wants("sums")) TERN_TRY(bench.sums());
  if (wants("determinism")) TERN_TRY(bench.determinism());
  if (wants("limit")) TERN_TRY(bench.limit());
  if (wants("growth")) TERN_TRY(bench.growth());
  if (!flags.json_file.empty() && comm.rank() == 0) TERN_TRY(write(bench.json(), flags.json_file));
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
  app.add_option("--repetitions", flags.turns.repetitions, "rounds over all contenders; the median counts")
      ->check(CLI::Range(1, 1000));
  app.add_option("--batch-seconds", flags.turns.batch_seconds, "length of a contender's turn in a round")
      ->check(CLI::Range(0.0001, 60.0));
  app.add_option("--collectives", flags.collectives, "collectives whose regret is measured")->delimiter(',');
  app.add_option("--tables", flags.tables, "what to measure")
      ->delimiter(',')
      ->check(CLI::IsMember(flags.tables));
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
