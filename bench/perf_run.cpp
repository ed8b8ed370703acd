#include "bench/perf_run.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/perf_json.h"
#include "bench/perf_measure.h"
#include "bench/perf_settle.h"
#include "bench/perf_text.h"
#include "runtime/base/log.h"
#include "runtime/bootstrap/speaker.h"

namespace tern::bench {
namespace {

enum ExitStatus : int { kGood = 0, kFailed = 1, kBadFlags = 2 };

struct Program {
  const PerfCollective* collective = nullptr;
  PerfCommand command = {};
  PerfSettings settings = {};
  std::vector<std::string> args;
  std::FILE* out = nullptr;

  const PerfOptions& options() const { return command.options; }
  std::string name() const { return fmt::format("{}_perf", collective->name); }
};

/// Rank 0 tells what went wrong, or rank 1 when rank 0 is what was lost or late: abort() carries every rank's
/// error to the others. Before there is a communicator, what can happen on one rank alone is told by that
/// rank.
bool tells(const Error& e, int rank, bool connected) {
  const bool only_here = e.code == Code::kOutOfMemory || e.code == Code::kIo || e.code == Code::kInternal;
  if (!connected && only_here) return true;
  const bool is_away = e.code == Code::kPeerLost || e.code == Code::kTimeout;
  return rank == (e.rank == 0 && is_away ? 1 : 0);
}

void tell(const Program& program, const Error& e) {
  std::fflush(program.out);
  fmt::print(stderr, "{}: {}\n", program.name(), e.message);
}

std::string after_colon(const std::string& line) {
  const size_t colon = line.find(": ");
  return colon == std::string::npos ? "" : line.substr(colon + 2);
}

std::string cpu_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name") || line.starts_with("CPU part")) return after_colon(line);
  }
  return "CPU";
}

std::string host_name() {
  char text[256] = {};
  if (gethostname(text, sizeof text - 1) != 0) return "?";
  return text;
}

Result<std::vector<RankLine>> gather_rank_lines(const World& world) {
  const nlohmann::json mine = {
      {"pid", getpid()}, {"host", host_name()}, {"device", world.local_rank}, {"info", cpu_name()}};
  TERN_ASSIGN(const std::vector<std::string> all,
              exchange(*world.store, world.rank, world.size,
                       {"perf/ranks", mine.dump(), Deadline::after(world.config.bootstrap_timeout),
                        "the list of ranks"}));
  std::vector<RankLine> lines;
  for (size_t r = 0; r < all.size(); ++r) {
    const auto j = nlohmann::json::parse(all[r], nullptr, false);
    if (!j.is_object())
      return error_at(static_cast<int>(r), Code::kCorrupt, "rank {} sent no description", r);
    lines.push_back({.rank = static_cast<int>(r),
                     .pid = j.value("pid", 0),
                     .host = j.value("host", ""),
                     .device = j.value("device", 0),
                     .device_info = j.value("info", "")});
  }
  return lines;
}

std::vector<std::string> changed_settings(const Config& config) {
  std::vector<std::string> env;
  const Config initial;
  for (const Setting& s : kSettings) {
    if (const std::string text = s.text_in(config); text != s.text_in(initial))
      env.push_back(fmt::format("{}={}", s.variable, text));
  }
  return env;
}

/// All rows of one cycle, in nccl-tests' order: type, operator, root, size.
std::vector<RowRequest> requests_of(const Program& program) {
  const PerfSettings& settings = program.settings;
  const std::vector<uint64_t> sizes = sweep_sizes(program.options());
  std::vector<RowRequest> requests;
  for (const Dtype dtype : settings.dtypes)
    for (const Op op : settings.ops)
      for (const int root : settings.roots)
        for (const uint64_t n_bytes : sizes)
          requests.push_back({.n_bytes = n_bytes, .dtype = dtype, .op = op, .root = root});
  return requests;
}

PerfRank::Setup setup_of(const Program& program, std::span<const RowRequest> requests, int n_ranks) {
  const PerfOptions& o = program.options();
  const CodecChoice codec = program.settings.codec;
  PerfRank::Setup setup = {.collective = program.collective, .options = &o, .codec = codec};
  if (!o.codec.empty()) setup.call.codec = codec;
  setup.call.timeout = Seconds(o.timeout_s);
  setup.call.algorithm = program.settings.algorithm;
  for (const RowRequest& r : requests) {
    const size_t count = count_for(*program.collective, r.n_bytes, r.dtype, n_ranks);
    setup.most_bytes = std::max(setup.most_bytes, bytes_of(*program.collective, count, r.dtype, n_ranks));
    setup.unalign_unit = std::max(setup.unalign_unit, size_of(r.dtype));
  }
  return setup;
}

/// One rank's whole run.
class RankRun {
 public:
  RankRun(const Program& program, const World& world) : program_(program), world_(world) {}

  /// True when all was right.
  Result<bool> run() {
    TERN_ASSIGN(Communicator comm, Communicator::create(world_));
    connected_ = true;
    Status status = sweep(comm);
    // The others must not wait for a rank that gave up.
    if (!status.ok()) comm.abort(status.error().message);
    if (!status.ok()) return status.error();
    return summary_.good();
  }
  bool connected() const { return connected_; }

 private:
  bool speaks() const { return world_.rank == 0; }
  void say(const std::string& text) {
    if (!speaks()) return;
    fmt::print(program_.out, "{}", text);
    std::fflush(program_.out);
  }

  Status sweep(Communicator& comm) {
    const std::vector<RowRequest> requests = requests_of(program_);
    TERN_TRY(start());
    const PerfOptions& o = program_.options();
    TERN_ASSIGN(PerfRank rank, PerfRank::create(comm, setup_of(program_, requests, world_.size)));
    say(text_preamble(info_));
    for (const std::string& flag : program_.command.without_effect)
      say(fmt::format("# {} has no effect on this machine\n", flag));
    say(text_table_head(o));
    for (int cycle = 0; o.run_cycles == 0 || cycle < o.run_cycles; ++cycle)
      for (const RowRequest& request : requests) TERN_TRY(row(rank, request));
    if (n_placements_ > 0) summary_.average_bus_gb_per_s = sum_bus_ / n_placements_;
    if (o.memory_report) {
      TERN_ASSIGN(summary_.memory, rank.memory_report());
    }
    say(text_footer(info_, summary_));
    return finish();
  }

  Status start() {
    info_ = {.program = program_.name(),
             .experiment = std::string(program_.collective->title),
             .options = program_.options(),
             .args = program_.args,
             .env = changed_settings(world_.config)};
    TERN_ASSIGN(info_.ranks, gather_rank_lines(world_));
    start_time_ = timestamp_now();
    if (const auto least = environment("NCCL_TESTS_MIN_BW")) {
      double value = 0;
      const auto parsed = std::from_chars(least->data(), least->data() + least->size(), value);
      if (parsed.ec != std::errc() || parsed.ptr != least->data() + least->size())
        return error(Code::kInvalidArgument, "NCCL_TESTS_MIN_BW is '{}', not a number of GB/s", *least);
      summary_.least_bus_gb_per_s = value;
    }
    const std::string& json = program_.options().json_file;
    if (json.empty() || !speaks()) return {};
    if (!std::ofstream(json, std::ios::app)) return error(Code::kIo, "cannot write the JSON report {}", json);
    return {};
  }

  Status row(PerfRank& rank, const RowRequest& request) {
    const PerfOptions& o = program_.options();
    const Result<RowResult> measured = rank.measure(request);
    if (!measured.ok()) {
      // Sweeps over everything leave out what does not exist; nothing was sent, on any rank.
      const bool swept = o.datatype == "all" || o.op == "all";
      if (measured.error().code != Code::kUnsupported || !swept) return measured.error();
      say(fmt::format("# skipped {} {}: {}\n", info(request.dtype).nccl_name, name(request.op),
                      measured.error().message));
      return {};
    }
    say(text_row(*measured, o, timestamp_now()));
    for (const PlacementResult* p : {&measured->out_of_place, &measured->in_place}) {
      summary_.n_wrong += p->n_wrong.value_or(0);
      sum_bus_ += p->bus_gb_per_s;
      ++n_placements_;
    }
    if (!o.json_file.empty()) rows_.push_back(*measured);
    return {};
  }

  Status finish() {
    const std::string& json = program_.options().json_file;
    if (json.empty() || !speaks()) return {};
    return write_json(json, {.run = &info_,
                             .rows = &rows_,
                             .summary = &summary_,
                             .start_time = start_time_,
                             .end_time = timestamp_now()});
  }

  const Program& program_;
  const World& world_;
  bool connected_ = false;
  RunInfo info_;
  Summary summary_;
  std::vector<RowResult> rows_;
  std::string start_time_;
  double sum_bus_ = 0;
  int n_placements_ = 0;
};

Result<std::vector<World>> worlds_for(const Program& program) {
  const int n_threads = program.options().n_ranks_in_process();
  const Config& config = program.settings.config;
  if (n_threads > 1) return World::in_process_world(n_threads, config);
  TERN_ASSIGN(World world, World::from_environment(config));
  return std::vector<World>{std::move(world)};
}

int run_ranks(const Program& program, const std::vector<World>& worlds) {
  std::atomic<int> exit_status = kGood;
  const auto run = [&](const World& world) {
    set_thread_log_rank(world.rank);
    RankRun rank(program, world);
    const Result<bool> good = rank.run();
    if (!good.ok() && tells(good.error(), world.rank, rank.connected())) tell(program, good.error());
    if (!good.ok() || !*good) exit_status = kFailed;
    world.store->leave();
  };
  if (worlds.size() == 1) {
    run(worlds.front());
    return exit_status;
  }
  std::vector<std::thread> threads;
  for (const World& world : worlds) threads.emplace_back([&run, &world] { run(world); });
  for (std::thread& thread : threads) thread.join();
  return exit_status;
}

}  // namespace

std::vector<uint64_t> sweep_sizes(const PerfOptions& o) {
  std::vector<uint64_t> sizes;
  for (uint64_t n = o.min_bytes; n <= o.max_bytes;) {
    sizes.push_back(n);
    const uint64_t next = o.step_factor > 1 ? n * static_cast<uint64_t>(o.step_factor) : n + o.step_bytes;
    if (next <= n) break;
    n = next;
  }
  return sizes;
}

int run_perf(const PerfCollective& collective, std::span<const char* const> args, std::FILE* out) {
  Program program = {.collective = &collective, .args = {args.begin(), args.end()}, .out = out};
  const auto wrong_flags = [&program](const Error& e) {
    if (speaks_first(environment)) tell(program, e);
    return kBadFlags;
  };
  Result<PerfCommand> command = parse_perf_options(args);
  if (!command.ok()) return wrong_flags(command.error());
  program.command = std::move(*command);
  if (!program.command.help.empty()) {
    if (speaks_first(environment)) fmt::print(out, "{}", program.command.help);
    return kGood;
  }
  const Result<Config> config = Config::from_environment();
  if (!config.ok()) {
    tell(program, config.error());  // every rank has an environment of its own
    return kBadFlags;
  }
  Result<PerfSettings> settings = settle(program.options(), collective, *config);
  if (!settings.ok()) return wrong_flags(settings.error());
  program.settings = std::move(*settings);
  const Result<std::vector<World>> worlds = worlds_for(program);
  if (worlds.ok()) return run_ranks(program, *worlds);
  if (speaks_without_world(worlds.error(), environment)) tell(program, worlds.error());
  return kFailed;
}

}  // namespace tern::bench
