// compare: Tern beside Open MPI, MPICH and Gloo (those that were found when it was built), in one run.
//
// Every library has its own group of processes. A round gives each group a turn of the same calls while the
// others sleep; rounds are repeated and their order rotates, so that what else happens on the machine meets
// all alike.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <list>

#include "bench/compare_options.h"
#include "bench/compare_row.h"
#include "runtime/base/config.h"

namespace tern::bench {
namespace {

enum ExitStatus : int { kGood = 0, kFailed = 1, kBadFlags = 2 };

/// A library that compare knows: a program beside this one, when it was built.
struct Library {
  std::string_view name;
  bool built;
  Launch launch;
  std::string_view launcher;
};
constexpr Library kTern = {"tern", true, Launch::kEnvironment, ""};
constexpr Library kPeers[] = {{"openmpi", TERN_COMPARE_OPENMPI, Launch::kOpenMpi, TERN_MPIRUN},
                              {"mpich", TERN_COMPARE_MPICH, Launch::kMpich, TERN_MPIEXEC_MPICH},
                              {"gloo", TERN_COMPARE_GLOO, Launch::kEnvironment, ""}};

std::vector<std::string> built_peers() {
  std::vector<std::string> names;
  for (const Library& peer : kPeers)
    if (peer.built) names.emplace_back(peer.name);
  return names;
}

Contender contender_of(const Library& library) {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return {.name = std::string(library.name),
          .program = (here / fmt::format("compare_{}", library.name)).string(),
          .launcher = std::string(library.launcher),
          .launch = library.launch};
}

/// A folder that goes with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tern-compare-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;  // what cannot be removed is the system's to clean
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A column of the table while its row is measured.
struct Turn {
  Group* group = nullptr;
  BatchRequest request;
  CompareCell cell = {};
};

/// As many calls as fill a turn, when one takes so long.
void set_iters(Turn& turn, double seconds_per_call, double batch_seconds) {
  constexpr double kMostIters = 2000;
  const double n = std::clamp(batch_seconds / std::max(seconds_per_call, 1e-9), 1.0, kMostIters);
  turn.request.n_iters = static_cast<int>(n);
  turn.request.n_warmup = std::clamp(turn.request.n_iters / 10, 1, 50);
}

/// Checks the result once and finds how many calls fill a turn.
Status prepare(Turn& turn, double batch_seconds) {
  turn.request.n_warmup = 1;
  turn.request.n_iters = 1;
  TERN_ASSIGN(std::optional<BatchAnswer> answer, turn.group->run(turn.request));
  turn.cell.offered = answer.has_value();
  if (!turn.cell.offered) return {};
  turn.cell.n_wrong += answer->n_wrong;
  // The first calls set memory up; a second look at short ones tells the true time.
  if (answer->seconds < batch_seconds / 4) {
    turn.request.n_iters = 10;
    TERN_ASSIGN(answer, turn.group->run(turn.request));
  }
  set_iters(turn, answer->seconds, batch_seconds);
  return {};
}

Status measure(std::vector<Turn>& turns, const CompareOptions& options) {
  for (Turn& turn : turns) TERN_TRY(prepare(turn, options.batch_seconds));
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    for (size_t i = 0; i < turns.size(); ++i) {
      Turn& turn = turns[(i + static_cast<size_t>(repetition)) % turns.size()];
      if (!turn.cell.offered) continue;
      TERN_ASSIGN(const std::optional<BatchAnswer> answer, turn.group->run(turn.request));
      if (!answer) return error(Code::kInternal, "{} lost a collective within a run", turn.cell.name);
      turn.cell.seconds.push_back(answer->seconds);
      // Libraries that spin on too few cores take 10 us or 20 ms from one moment to the next.
      set_iters(turn, answer->seconds, options.batch_seconds);
      turn.cell.n_wrong += answer->n_wrong;
    }
  }
  return {};
}

class Comparison {
 public:
  Comparison(const CompareOptions& options, std::string command) : options_(options) {
    setting_.command = std::move(command);
    setting_.repetitions = options.repetitions;
    setting_.n_cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  }

  /// True when every result was right.
  Result<bool> run() {
    if (folder_.path().empty()) return error(Code::kIo, "cannot make a temporary folder");
    for (const int n_ranks : options_.ranks) TERN_TRY(block(n_ranks));
    if (!options_.json_file.empty()) {
      std::ofstream file(options_.json_file);
      file << compare_json(setting_, rows_) << "\n";
      if (!file.flush()) return error(Code::kIo, "cannot write {}", options_.json_file);
    }
    return std::all_of(rows_.begin(), rows_.end(), [](const CompareRow& row) { return row.n_wrong() == 0; });
  }

 private:
  /// All rows of one number of ranks.
  Status block(int n_ranks) {
    std::list<Group> groups;
    TERN_TRY(start(groups, n_ranks));
    fmt::print("{}# 4 B latency\n", compare_head(setting_, options_.peers));
    std::fflush(stdout);
    for (const Exercise exercise : options_.exercises)
      TERN_TRY(row(groups, {.exercise = exercise, .count = 1}, n_ranks));
    fmt::print("# by size\n");
    for (const Exercise exercise : options_.exercises) {
      for (const uint64_t n_bytes : compare_sizes(options_)) {
        const size_t count =
            n_bytes / sizeof(float) / (is_sharded(exercise) ? static_cast<size_t>(n_ranks) : 1);
        if (count > 0) TERN_TRY(row(groups, {.exercise = exercise, .count = count}, n_ranks));
      }
    }
    fmt::print("\n");
    return {};
  }

  Status start(std::list<Group>& groups, int n_ranks) {
    GroupOptions common = {
        .n_ranks = n_ranks, .folder = folder_.path(), .mpirun_args = options_.mpirun_args, .settings = {}};
    if (!options_.transport.empty()) common.settings.push_back("TERN_TRANSPORT=" + options_.transport);
    if (options_.transport == "ucx" || options_.transport == "tcp") {
      common.mpirun_args += " --mca pml ob1 --mca btl tcp,self";
      for (const char* setting : {"MPIR_CVAR_NOLOCAL=1", "UCX_TLS=tcp,self"})
        common.settings.emplace_back(setting);
    }
    setting_.versions.clear();
    const auto add = [&](const Library& library) -> Status {
      TERN_ASSIGN(Group group, Group::start(contender_of(library), common));
      setting_.versions.push_back(fmt::format("{} {}", group.name(), group.version()));
      groups.push_back(std::move(group));
      return {};
    };
    TERN_TRY(add(kTern));
    for (const std::string& peer : options_.peers) {
      for (const Library& library : kPeers) {
        if (library.name == peer) TERN_TRY(add(library));
      }
    }
    return {};
  }

  /// Two rows: Tern with memory from tern::allocate and with plain memory, beside the same measurements of
  /// the peers.
  Status row(std::list<Group>& groups, BatchRequest request, int n_ranks) {
    std::vector<Turn> turns;
    for (Group& group : groups) {
      request.shared = turns.empty();
      turns.push_back({.group = &group, .request = request, .cell = {.name = group.name()}});
      if (turns.size() > 1) continue;
      request.shared = false;
      turns.push_back({.group = &group, .request = request, .cell = {.name = group.name()}});
    }
    TERN_TRY(measure(turns, options_));
    const ExerciseShape shape = {.exercise = request.exercise, .n_ranks = n_ranks, .count = request.count};
    for (size_t memory = 0; memory < 2; ++memory) {
      CompareRow row = {.exercise = request.exercise,
                        .n_bytes = std::max(shape.n_send(), shape.n_recv()) * sizeof(float),
                        .n_ranks = n_ranks,
                        .shared = memory == 0,
                        .tern = turns[memory].cell,
                        .peers = {}};
      for (size_t i = 2; i < turns.size(); ++i) row.peers.push_back(turns[i].cell);
      fmt::print("{}", compare_line(row));
      std::fflush(stdout);
      rows_.push_back(std::move(row));
    }
    return {};
  }

  const CompareOptions& options_;
  TemporaryFolder folder_;
  CompareSetting setting_;
  std::vector<CompareRow> rows_;
};

std::optional<int> number(std::string_view variable) {
  const auto text = environment(variable);
  int value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc()) return {};
  return value;
}

int run(const std::vector<const char*>& args) {
  // Under mpirun, its first rank runs the comparison for as many ranks and the others have nothing to do.
  if (number("OMPI_COMM_WORLD_RANK").value_or(number("PMI_RANK").value_or(0)) != 0) return kGood;
  Result<CompareCommand> command = parse_compare_options(args, built_peers());
  if (!command.ok()) {
    fmt::print(stderr, "compare: {}\n", command.error().message);
    return kBadFlags;
  }
  if (!command->help.empty()) {
    fmt::print("{}", command->help);
    return kGood;
  }
  auto& ranks = command->options.ranks;
  if (const auto size = number("OMPI_COMM_WORLD_SIZE"))
    ranks = {*size};
  else if (const auto pmi_size = number("PMI_SIZE"))
    ranks = {*pmi_size};
  const Result<bool> right = Comparison(command->options, fmt::format("{}", fmt::join(args, " "))).run();
  if (!right.ok()) {
    std::fflush(stdout);
    fmt::print(stderr, "compare: {}\n", right.error().message);
    return kFailed;
  }
  return *right ? kGood : kFailed;
}

}  // namespace
}  // namespace tern::bench

int main(int argc, char** argv) {
  return tern::bench::run({argv, argv + argc});
}
