#include "runtime/communicator/engine.h"

#include <algorithm>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/communicator/cost.h"
#include "runtime/communicator/store_accuser.h"

namespace tern {

Result<std::unique_ptr<Engine>> Engine::create(const World& world, Setup setup) {
  TERN_ASSIGN(const CodecChoice codec, parse_codec_choice(world.config.codec));
  TERN_ASSIGN(AlgorithmRules rules, parse_algorithm_rules(world.config.algorithm));
  std::vector<int> ascending = setup.members.ranks;
  std::sort(ascending.begin(), ascending.end());
  TERN_ASSIGN(const std::vector<int> cores, cores_of_hosts(world, setup.members.ranks, setup.key));
  TERN_ASSIGN(auto transport, connect(world, ascending, setup.key));
  auto engine = std::unique_ptr<Engine>(new Engine(world, std::move(setup), std::move(transport)));
  engine->accuser_ = std::make_unique<StoreAccuser>(*engine->world_.store, engine->key_);
  Planner planner({.rank = engine->members_.self,
                   .n_ranks = engine->members_.size(),
                   .model = cost_model(world, engine->members_.ranks, cores, engine->speeds_),
                   .rules = std::move(rules),
                   .segment_bytes = world.config.segment_bytes,
                   .rank_order = world.config.deterministic != 0,
                   .codecs = engine->speeds_.codecs});
  engine->runner_ =
      std::make_unique<Runner>(Runner::Setup{.world = &engine->world_,
                                             .members = &engine->members_,
                                             .transport = engine->transport_.get(),
                                             .accuser = engine->accuser_.get(),
                                             .default_codec = codec,
                                             .crowded = is_crowded(world, engine->members_.ranks, cores)},
                               std::move(planner));
  return engine;
}

Engine::Engine(const World& world, Setup setup, std::unique_ptr<Transport> transport)
    : world_(world),
      members_(std::move(setup.members)),
      key_(std::move(setup.key)),
      speeds_(std::move(setup.speeds)),
      transport_(std::move(transport)) {}

CodecCounts Engine::codec_counts() {
  const std::lock_guard lock(execution_);
  return runner_->codec_counts();
}

std::string Engine::next_key() {
  const std::lock_guard lock(execution_);
  return fmt::format("{}/{}", key_, n_keys_++);
}

Engine::~Engine() {
  {
    const std::lock_guard lock(queue_mutex_);
    stopping_ = true;
  }
  queued_.notify_all();
  if (progress_.joinable()) progress_.join();
}

Status Engine::run(std::span<const Operation> operations) {
  if (n_queued_.load(std::memory_order_acquire) == 0) {
    const std::lock_guard lock(execution_);
    return execute(operations, last_report_);
  }
  // Asynchronous calls are ahead: this one queues behind them.
  TERN_ASSIGN(auto state, start(operations));
  TERN_TRY(state->wait(Deadline()));
  last_report_ = state->report;
  return {};
}

Result<std::shared_ptr<WorkState>> Engine::start(std::span<const Operation> operations) {
  TERN_TRY(runner_->check(operations));
  auto state = std::make_shared<WorkState>(operations);
  state->called = Clock::now();
  {
    const std::lock_guard lock(queue_mutex_);
    if (!progress_.joinable()) progress_ = std::thread([this] { progress(); });
    queue_.push_back(state);
    // Release pairs with run(): a blocking call that sees zero also sees all that the queue's calls wrote.
    n_queued_.fetch_add(1, std::memory_order_release);
  }
  queued_.notify_one();
  return state;
}

void Engine::progress() {
  set_thread_log_rank(world_.rank);
  std::unique_lock lock(queue_mutex_);
  while (true) {
    queued_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::shared_ptr<WorkState> state = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    Status status;
    {
      const std::lock_guard execution(execution_);
      const double queued = seconds_since(state->called);
      status = execute(state->operations, state->report);
      state->report.queued_seconds = queued;
    }
    n_queued_.fetch_sub(1, std::memory_order_release);
    state->finish(std::move(status));
    lock.lock();
  }
}

void Engine::abort(const std::string& why) {
  transport_->abort(error_at(world_.rank, Code::kAborted, "rank {} aborted: {}", world_.rank, why));
}

Status Engine::execute(std::span<const Operation> operations, CallReport& report) {
  if (failed_) {
    return Error{Code::kAborted,
                 "the communicator failed earlier and accepts only destruction: " + failed_->message,
                 failed_->rank};
  }
  Status status = runner_->run(operations, report);
  if (status.ok() || status.error().code == Code::kInvalidArgument ||
      status.error().code == Code::kUnsupported)
    return status;
  failed_ = status.error();
  world_.store->fail(*failed_);
  return status;
}

}  // namespace tern
