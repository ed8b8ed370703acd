// tern-train RUN.json: trains a model on the ranks that mpirun, torchrun, srun or nobody started.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/base/output.h"
#include "runtime/bootstrap/launch.h"
#include "runtime/bootstrap/speaker.h"
#include "trainer/banner.h"
#include "trainer/config/keys.h"
#include "trainer/data/token_file.h"
#include "trainer/session.h"
#include "trainer/stop_signal.h"

namespace tern::trainer {
namespace {

struct CommandLine {
  std::string run_file;
  std::vector<std::string> assignments;
  bool check_config = false;
  bool dry_run = false;
  bool list_keys = false;
  int ranks = 0;
};

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

int fail(const Error& error) {
  fmt::print(stderr, "tern-train: {}\n", error.message);
  return 1;
}

/// --check-config and --dry-run: what the run would be, without ranks.
int describe(const CommandLine& line, const Config& settings) {
  const Result<RunConfig> config = RunConfig::from_file(line.run_file, line.assignments);
  if (!config.ok()) return fail(config.error());
  int n_ranks = line.ranks;
  if (n_ranks == 0) {
    const Result<Launch> launch = detect_launch(environment);
    n_ranks = launch.ok() ? launch->size : 1;
  }
  const Ranks ranks{n_ranks, n_ranks, settings.threads};
  const Result<RunPlan> plan = plan_run(*config, ranks);
  if (!plan.ok()) return fail(plan.error());
  if (const Status text = TokenFile::find_text(config->data.text); !text.ok()) return fail(text.error());
  if (line.check_config) {
    print(fmt::format("{} is a valid run for {} ranks\n", line.run_file, n_ranks));
    return 0;
  }
  const int64_t free_bytes = free_memory();
  print(banner(*config, *plan, free_bytes));
  const Status fits = check_memory(predict_memory(*config, *plan), ranks, free_bytes);
  return fits.ok() ? 0 : fail(fits.error());
}

/// Parameters and gradients live in the heap; it is address space, so room for them costs nothing.
void make_room(const Result<RunConfig>& run, Config& settings) {
  if (!run.ok()) return;
  constexpr uint64_t kOthers = uint64_t{512} << 20;  // the transport's and the executor's
  const auto shared = static_cast<uint64_t>(2 * parameter_count(run->model)) * sizeof(float);
  settings.heap_bytes = std::max(settings.heap_bytes, shared + shared / 8 + kOthers);
}

int train(const CommandLine& line, Config settings) {
  catch_stop_signals();
  const Result<RunConfig> run = RunConfig::from_file(line.run_file, line.assignments);
  make_room(run, settings);
  const Result<World> world = World::from_environment(settings);
  if (!world.ok()) {
    return speaks_without_world(world.error(), environment) ? fail(world.error()) : 1;
  }
  let_steps_end();
  const bool first = world->rank == 0;
  // mpirun gives its ranks a pseudo-terminal for stdout, whatever its own output is; stderr tells the truth.
  const bool is_terminal = isatty(STDOUT_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
  const Console console{first ? print : std::function<void(std::string_view)>(), is_terminal};
  const Result<RunOutcome> outcome = run_training(*world, run, console, stop_requested);
  if (!outcome.ok()) {
    const std::optional<Error> cause = world->store->failure();
    return speaks_for_failure(*world, outcome.error()) ? fail(cause ? *cause : outcome.error()) : 1;
  }
  if (first && outcome->interrupted) {
    std::string sets;
    for (const std::string& assignment : line.assignments) sets += fmt::format(" --set '{}'", assignment);
    print(fmt::format("\nstopped after its step; to go on: tern-train {}{} --set run.resume={}\n",
                      line.run_file, sets, outcome->checkpoint));
  }
  return 0;
}

int run(int argc, char** argv) {
  CommandLine line;
  CLI::App app("Trains a Llama-style model on text, over ranks started by mpirun, torchrun or srun.",
               "tern-train");
  app.add_option("RUN.json", line.run_file, "model, data, deepspeed, communication, run");
  app.add_option("--set", line.assignments, "key.path=value, changes the file; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_flag("--check-config", line.check_config, "say whether the configuration is valid, and end");
  app.add_flag("--dry-run", line.dry_run, "say what would be run and how much memory it takes, and end");
  app.add_flag("--keys", line.list_keys, "list all configuration keys as a Markdown table, and end");
  app.add_option("--ranks", line.ranks, "ranks to assume for --check-config and --dry-run")
      ->check(CLI::Range(1, 1 << 20));
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& wrong) {
    fmt::print(stderr, "tern-train: {} (--help lists the flags)\n", wrong.what());
    return 2;
  }
  if (line.ranks > 0 && !line.check_config && !line.dry_run) {
    fmt::print(stderr,
               "tern-train: --ranks {} is for --check-config and --dry-run; a run has the ranks that mpirun, "
               "torchrun or srun starts\n",
               line.ranks);
    return 2;
  }
  if (line.list_keys) {
    print(key_table(run_keys()));
    return 0;
  }
  if (line.run_file.empty()) return fail(error(Code::kInvalidArgument, "give a RUN.json; --help says more"));
  const Result<Config> settings = Config::from_environment();
  if (!settings.ok()) return fail(settings.error());
  return line.check_config || line.dry_run ? describe(line, *settings) : train(line, *settings);
}

}  // namespace
}  // namespace tern::trainer

int main(int argc, char** argv) {
  return tern::guarded_main("tern-train", [&] { return tern::trainer::run(argc, argv); });
}
