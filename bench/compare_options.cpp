#include "bench/compare_options.h"

#include <CLI/CLI.hpp>

#include "bench/flags.h"
#include "runtime/base/size.h"

namespace tern::bench {
namespace {

struct Texts {
  std::string min = "1K";
  std::string max = "64M";
  std::vector<std::string> collectives = {std::begin(kExerciseNames), std::end(kExerciseNames)};
};

void add_flags(CLI::App& app, CompareOptions& o, Texts& texts) {
  app.add_option("--ranks", o.ranks, "numbers of ranks, one block each (under mpirun: that of mpirun)")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  app.add_option("--collectives", texts.collectives, "collectives to compare")->delimiter(',');
  app.add_option("--min", texts.min, "smallest size in bytes of the whole vector");
  app.add_option("--max", texts.max, "largest size");
  app.add_option("--factor", o.factor, "factor between sizes")->check(CLI::Range(2, 1 << 20));
  app.add_option("--repetitions", o.repetitions, "rounds over all libraries; the median counts")
      ->check(CLI::Range(1, 1000));
  app.add_option("--batch-seconds", o.batch_seconds, "length of a library's turn in a round")
      ->check(CLI::Range(0.0001, 60.0));
  app.add_option("--peers", o.peers, "libraries beside Tern")->delimiter(',');
  app.add_option("--transport", o.transport,
                 "Tern's transport; ucx, tcp: the other libraries then use TCP as well");
  app.add_option("--mpirun-args", o.mpirun_args, "further words for Open MPI's mpirun");
  app.add_option("--json", o.json_file, "the rows as JSON too");
}

Status check(CompareOptions& o, const Texts& texts, const std::vector<std::string>& known) {
  TERN_ASSIGN(o.min_bytes, parse_size(texts.min));
  TERN_ASSIGN(o.max_bytes, parse_size(texts.max));
  if (o.min_bytes < 4 || o.min_bytes > o.max_bytes || o.max_bytes > uint64_t{4} << 30)
    return error(Code::kInvalidArgument, "--min {} and --max {} must be in order between 4 bytes and 4G",
                 texts.min, texts.max);
  for (const std::string& text : texts.collectives) {
    TERN_ASSIGN(const Exercise exercise, parse_exercise(text));
    o.exercises.push_back(exercise);
  }
  for (const std::string& peer : o.peers) {
    if (std::find(known.begin(), known.end(), peer) == known.end())
      return error(Code::kInvalidArgument, "--peers {}: this build has {}", peer,
                   known.empty() ? std::string("none") : fmt::format("{}", fmt::join(known, ", ")));
  }
  return {};
}

}  // namespace

Result<CompareCommand> parse_compare_options(std::span<const char* const> args,
                                             const std::vector<std::string>& known) {
  CompareCommand command;
  command.options.peers = known;
  Texts texts;
  CLI::App app("Tern beside other libraries: the same calls on ranks of each, in turns within one run.",
               "compare");
  prepare_flags(app);
  add_flags(app, command.options, texts);
  TERN_ASSIGN(command.help, parse_flags(app, args));
  if (!command.help.empty()) return command;
  TERN_TRY(check(command.options, texts, known));
  return command;
}

std::vector<uint64_t> compare_sizes(const CompareOptions& options) {
  std::vector<uint64_t> sizes;
  for (uint64_t n = options.min_bytes; n <= options.max_bytes; n *= static_cast<uint64_t>(options.factor))
    sizes.push_back(n);
  return sizes;
}

}  // namespace tern::bench
