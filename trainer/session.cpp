#include "trainer/session.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>

#include "trainer/banner.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/kernels/peak.h"
#include "trainer/model/generate.h"
#include "trainer/output_dir.h"
#include "trainer/parallel/agreement.h"
#include "trainer/progress_line.h"
#include "trainer/trainer.h"

namespace tern::trainer {
namespace {

namespace fs = std::filesystem;

/// One rank's run. Members are made step by step in prepare(), in dependency order.
class Session {
 public:
  Session(const World& world, Communicator& comm, const RunConfig& config, const Console& console)
      : world_(world), comm_(comm), config_(config), console_(console), ranks_(ranks_of(world)) {}

  Result<RunOutcome> run(const std::function<bool()>& stop) {
    TERN_TRY(prepare());
    TERN_TRY(resume());
    if (trainer_->progress().step >= config_.run.steps) return nothing_to_do();
    TERN_TRY(agree(comm_, begin_output()));
    Result<RunOutcome> outcome = steps(stop);
    if (!outcome.ok() || outcome->interrupted) return outcome;
    TERN_TRY(finish(*outcome));
    return outcome;
  }

 private:
  bool first() const { return comm_.rank() == 0; }
  void say(std::string_view text) const {
    if (first() && console_.write) console_.write(text);
  }
  std::string in_output(std::string_view name) const {
    return (fs::path(config_.run.output_dir) / name).string();
  }

  Status prepare() {
    Result<RunPlan> plan = plan_run(config_, ranks_);
    TERN_TRY(agree(comm_, plan.status()));
    plan_ = *plan;
    const int64_t free_bytes = free_memory();
    say(banner(config_, plan_, free_bytes));
    TERN_ASSIGN(start_, find_checkpoint(comm_, config_.run.resume, config_.run.output_dir));
    TERN_TRY(agree(comm_, check_output()));
    // Before anything else is in the caches; the other ranks sleep in the next agreement.
    if (first() && config_.run.measure_peak) measure_peak();
    TERN_TRY(agree(comm_, check_memory(predict_memory(config_, plan_), ranks_, free_bytes)));
    TERN_TRY(agree(comm_, make_output()));
    const std::string token_path = TokenFile::path_for(config_.data.text, config_.data.cache_dir);
    const bool tokenises = world_.local_rank == 0;  // one rank per machine: they may not share a file system
    TERN_TRY(agree(comm_, tokenises ? TokenFile::prepare(config_.data.text, token_path) : Status()));
    TERN_TRY(agree(comm_, open_data(token_path)));
    return agree(comm_, same_text());
  }

  void measure_peak() {
    const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    Team team(std::min(cores, plan_.threads * ranks_.per_host));
    const int n_hosts = (ranks_.n + ranks_.per_host - 1) / ranks_.per_host;
    peak_flops_ = measure_peak_flops(team) * n_hosts;
    say(fmt::format(
        "  peak        {:.0f} GFLOP/s fp32 on {} cores here, x {} machines: what MFU is a share of\n",
        peak_flops_ / n_hosts / 1e9, team.size(), n_hosts));
  }

  Status check_output() {
    if (!first()) return {};
    leftovers_ = find_leftovers(config_.run.output_dir, start_);
    return check_leftovers(config_.run, leftovers_);
  }

  /// Nothing in it is changed yet: what follows may fail, and an earlier run's files are then as they were.
  Status make_output() {
    if (!first()) return {};
    std::error_code failed;
    fs::create_directories(config_.run.output_dir, failed);
    if (!failed) return {};
    return error(Code::kIo, "run.output_dir: cannot create {}: {}", config_.run.output_dir, failed.message());
  }

  Status open_data(const std::string& token_path) {
    TERN_ASSIGN(TokenFile tokens, TokenFile::open(token_path));
    tokens_ = std::make_unique<TokenFile>(std::move(tokens));
    TERN_ASSIGN(trainer_, Trainer::create(comm_, config_, plan_, *tokens_));
    return {};
  }

  Status same_text() {
    const FileId& mine = tokens_->source();
    const std::string text = fmt::format("{} bytes, hash {:016x}", mine.n_bytes, mine.hash);
    TERN_ASSIGN(const std::string expected, text_of_rank_0(comm_, text));
    if (text == expected) return {};
    return error(Code::kInvalidArgument, "data.text: rank {} reads another text ({}) than rank 0 ({})",
                 comm_.rank(), text, expected);
  }

  /// Only a checkpoint of another step is resumed without its being asked for.
  void say_skipped() const {
    if (!first() || config_.run.resume != "latest") return;
    const std::string skipped = newest_incomplete(config_.run.output_dir);
    if (!skipped.empty())
      say(fmt::format("  skipped     {}, which is newer: it is no whole checkpoint, for it has no {}\n",
                      skipped, kManifestName));
  }

  Status resume() {
    say_skipped();
    if (!start_.empty()) {
      TrainState state = trainer_->state();
      TERN_ASSIGN(const Progress progress, load_checkpoint(comm_, state, start_));
      trainer_->resume_at(progress);
      say(fmt::format("  resumed     {} at step {}\n", start_, progress.step));
    } else if (config_.run.resume == "latest") {
      say(fmt::format("  resumed     nothing: {} holds no checkpoint yet, so this run starts at step 0\n",
                      config_.run.output_dir));
    }
    return {};
  }

  RunOutcome nothing_to_do() const {
    say(fmt::format("nothing to do: {} is at step {}, and run.steps is {}; raise run.steps to go on\n",
                    start_, trainer_->progress().step, config_.run.steps));
    RunOutcome outcome;
    outcome.checkpoint = start_;
    return outcome;
  }

  Status begin_output() {
    if (!first()) return {};
    TERN_ASSIGN(const std::string told, remove_leftovers(config_.run.output_dir, leftovers_));
    say(told);
    TERN_TRY(replace_file(in_output("run.json"), config_.resolved.dump(2) + "\n"));
    const int64_t last_step = leftovers_.resumes_here ? trainer_->progress().step : 0;
    TERN_ASSIGN(MetricsFile metrics, MetricsFile::open(in_output(kMetricsName), last_step));
    metrics_ = std::make_unique<MetricsFile>(std::move(metrics));
    return {};
  }

  Result<RunOutcome> steps(const std::function<bool()>& stop) {
    RunOutcome outcome;
    bool stopped = false;
    while (trainer_->progress().step < config_.run.steps && !stopped) {
      TERN_ASSIGN(StepOutcome done, trainer_->step(stop && stop()));
      stopped = done.stop;
      if (peak_flops_ > 0) {
        done.record.mfu = done.record.tokens_per_second() *
                          flops_per_token(config_.model, config_.data.sequence_length) / peak_flops_;
      }
      TERN_TRY(record(done.record));
      const int64_t step = trainer_->progress().step;
      const bool last = step == config_.run.steps;
      if (due(config_.run.val_every, step) && !last) TERN_TRY(validate());
      if (due(config_.run.checkpoint_every, step) || stopped || last) {
        TERN_ASSIGN(outcome.checkpoint, save());
      }
    }
    outcome.interrupted = stopped && trainer_->progress().step < config_.run.steps;
    return outcome;
  }

  static bool due(int64_t every, int64_t step) { return every > 0 && step % every == 0; }

  /// Only rank 0 writes; when it cannot, the error ends its run, and run_training() tells the others.
  Status record(const StepRecord& record) {
    summary_.add(record);
    elapsed_seconds_ += record.step_seconds;
    ++n_done_here_;
    if (!first()) return {};
    TERN_TRY(metrics_->append(record));
    const bool last = record.step == config_.run.steps;
    const bool print = console_.is_terminal || last || !record.skipped.empty() ||
                       record.step % config_.run.steps_per_print == 0;
    if (!print) return {};
    const std::string line =
        progress_line(record, {config_.run.steps, elapsed_seconds_, n_done_here_, console_.is_terminal});
    if (!console_.is_terminal) {
      say(line + "\n");
    } else {
      say("\r\x1b[K" + line + (last ? "\n" : ""));  // erase to the end: the last line may have been longer
    }
    return {};
  }

  Status validate() {
    TERN_ASSIGN(val_loss_, trainer_->validate());
    say(fmt::format("{}step {}  validation loss {:.4f}\n", console_.is_terminal ? "\r\x1b[K" : "",
                    trainer_->progress().step, val_loss_));
    return {};
  }

  Result<std::string> save() {
    const TrainState state = trainer_->state();
    return save_checkpoint(comm_, state, trainer_->progress(),
                           {config_.run.output_dir, config_.run.checkpoint_keep});
  }

  Status finish(RunOutcome& outcome) {
    if (config_.run.val_batches > 0) TERN_TRY(validate());
    return agree(comm_, first() ? write_summary(outcome) : Status());
  }

  Status write_summary(RunOutcome& outcome) {
    outcome.summary = summary_.to_json(to_string(plan_.codec));
    outcome.summary["val_loss"] = val_loss_;
    outcome.summary["parameters"] = parameter_count(config_.model);
    TERN_ASSIGN(const std::string text, sample());
    outcome.summary["sample"] = text;
    if (!text.empty()) say(fmt::format("sample: {}\n", text));
    return replace_file(in_output("summary.json"),
                        outcome.summary.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }

  /// The prompt and what the model makes of it. The other ranks sleep meanwhile, so all cores are free for
  /// it.
  Result<std::string> sample() const {
    std::string text = config_.run.sample_prompt;
    if (config_.run.sample_tokens == 0 || text.empty()) return std::string();
    const std::vector<int32_t> prompt = [&text] {
      std::vector<int32_t> tokens;
      for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
      return tokens;
    }();
    SamplingOptions options;
    options.n_tokens = config_.run.sample_tokens;
    options.temperature = config_.run.sample_temperature;
    options.seed = config_.run.seed;
    options.window = config_.data.sequence_length;
    options.threads = plan_.threads * world_.local_size;
    TERN_ASSIGN(const std::vector<int32_t> tokens,
                generate(config_.model, trainer_->parameters(), prompt, options));
    for (const int32_t token : tokens) text += token < kByteVocabulary ? static_cast<char>(token) : '?';
    return text;
  }

  const World& world_;
  Communicator& comm_;
  const RunConfig& config_;
  const Console& console_;
  Ranks ranks_;
  RunPlan plan_;
  std::string start_;    ///< the checkpoint to go on from; empty: none
  Leftovers leftovers_;  ///< on rank 0
  std::unique_ptr<TokenFile> tokens_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<MetricsFile> metrics_;
  Summary summary_;
  double peak_flops_ = 0;  ///< of all machines, on rank 0; 0: not measured
  double val_loss_ = 0;
  double elapsed_seconds_ = 0;
  int64_t n_done_here_ = 0;
};

}  // namespace

Result<RunOutcome> run_training(const World& world, const Result<RunConfig>& config, const Console& console,
                                const std::function<bool()>& stop) {
  TERN_ASSIGN(Communicator comm, Communicator::create(world));
  const auto run = [&]() -> Result<RunOutcome> {
    TERN_TRY(agree(comm, config.status()));
    return Session(world, comm, *config, console).run(stop);
  };
  Result<RunOutcome> outcome = run();
  if (outcome.ok()) return outcome;
  Error failure = outcome.error();
  if (failure.rank >= 0) return failure;  // agreed on by all ranks, or heard from the collective that failed
  failure.rank = world.rank;
  world.store->fail(failure);
  comm.abort(failure.message);
  return failure;
}

}  // namespace tern::trainer
