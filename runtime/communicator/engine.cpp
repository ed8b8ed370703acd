#include "runtime/communicator/engine.h"

#include <utility>

#include "runtime/base/log.h"
#include "runtime/communicator/cost.h"

namespace tern {

namespace {

// Peers that run on cores of their own are worth polling for; where ranks outnumber cores each poll keeps the
// awaited rank from running. 100 us of yielding bridges the gaps inside a collective, after that the core is
// worth more to others.
WaitPolicy wait_policy(const World& world) {
  const bool crowded = world.local_size > cores_for(world);
  return {.spin = crowded ? Clock::duration::zero() : std::chrono::microseconds(world.config.spin_us),
          .yield = std::chrono::microseconds(100)};
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(const World& world) {
  TERN_ASSIGN(const CodecSpec codec, parse_codec(world.config.codec));
  TERN_ASSIGN(AlgorithmRules rules, parse_algorithm_rules(world.config.algorithm));
  TERN_ASSIGN(auto transport, connect(world, "communicator"));
  Planner planner(world.rank, world.size, cost_model(world), std::move(rules), world.config.segment_bytes);
  return std::unique_ptr<Engine>(new Engine(world, std::move(transport), codec, std::move(planner)));
}

Engine::Engine(const World& world, std::unique_ptr<Transport> transport, CodecSpec default_codec,
               Planner planner)
    : world_(world),
      transport_(std::move(transport)),
      default_codec_(default_codec),
      planner_(std::move(planner)),
      executor_(*transport_, *world_.heap, world_.rank, wait_policy(world_)) {}

Engine::~Engine() {
  {
    const std::lock_guard lock(queue_mutex_);
    stopping_ = true;
  }
  queued_.notify_all();
  if (progress_.joinable()) progress_.join();
}

Status Engine::run(const Job& job) {
  if (n_queued_.load(std::memory_order_acquire) == 0) {
    const std::lock_guard lock(execution_);
    return execute(job, last_report_);
  }
  // Asynchronous calls are ahead: this one queues behind them.
  TERN_ASSIGN(auto state, start(job));
  TERN_TRY(state->wait(Deadline()));
  last_report_ = state->report;
  return {};
}

Result<std::shared_ptr<WorkState>> Engine::start(const Job& job) {
  TERN_TRY(check(job));
  auto state = std::make_shared<WorkState>();
  state->job = job;
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
      state->report.queued_seconds = seconds_since(state->called);
      status = execute(state->job, state->report);
    }
    n_queued_.fetch_sub(1, std::memory_order_release);
    state->finish(std::move(status));
    lock.lock();
  }
}

void Engine::abort(const std::string& why) {
  transport_->abort(error_at(world_.rank, Code::kAborted, "rank {} aborted: {}", world_.rank, why));
}

Result<CodecSpec> Engine::codec_for(const Job& job) const {
  const bool reduces =
      job.collective == Collective::kAllReduce || job.collective == Collective::kReduceScatter;
  if (!job.options.codec.has_value()) {
    // The default codec applies where it can; a call that names one must get it or an error.
    const bool applies =
        reduces && job.out.dtype == Dtype::kFloat32 && (job.op == Op::kSum || job.op == Op::kAvg) &&
        (info(default_codec_.id).residual != ResidualUse::kMandatory || job.options.residual != nullptr);
    return applies ? default_codec_ : CodecSpec{};
  }
  if (job.options.codec->id == CodecId::kNone) return CodecSpec{};
  const CodecInfo& codec = info(job.options.codec->id);
  if (!reduces) {
    return error(Code::kUnsupported, "{} with codec {}: codecs apply to all_reduce and reduce_scatter",
                 name(job.collective), codec.name);
  }
  if (job.out.dtype != Dtype::kFloat32 || (job.op != Op::kSum && job.op != Op::kAvg)) {
    return error(Code::kUnsupported, "codec {} encodes fp32 sums and averages, not {} {}", codec.name,
                 name(job.out.dtype), name(job.op));
  }
  if (codec.residual == ResidualUse::kMandatory && job.options.residual == nullptr && job.count > 0) {
    return error(
        Code::kInvalidArgument,
        "codec {} is biased and needs a residual of {} floats (CallOptions::residual), which is not there",
        codec.name, job.count);
  }
  return *job.options.codec;
}

Result<CodecSpec> Engine::check(const Job& job) const {
  if (job.count > 0 && job.count > SIZE_MAX / size_of(job.out.dtype)) {
    return error(Code::kInvalidArgument, "{} elements of {} bytes overflow the address space", job.count,
                 size_of(job.out.dtype));
  }
  return codec_for(job);
}

Status Engine::execute(const Job& job, CallReport& report) {
  if (failed_) {
    return Error{Code::kAborted,
                 "the communicator failed earlier and accepts only destruction: " + failed_->message,
                 failed_->rank};
  }
  TERN_ASSIGN(const CodecSpec codec, check(job));
  TERN_ASSIGN(const Decision* decision, planner_.decide({.collective = job.collective,
                                                         .n_bytes = job.count * size_of(job.out.dtype),
                                                         .elt = size_of(job.out.dtype),
                                                         .root = job.root,
                                                         .codec = codec,
                                                         .algorithm = job.options.algorithm}));
  const auto begun = Clock::now();
  Call call = make_call(job, *decision, codec);
  call.deadline = Deadline(begun + std::chrono::duration_cast<Clock::duration>(call.timeout));
  CallCounters counters;
  if (Status status = executor_.run(call, counters); !status.ok()) {
    failed_ = status.error();
    world_.store->fail(*failed_);
    return status;
  }
  report.measured_seconds = seconds_since(begun);
  report.algorithm = decision->algorithm;
  report.codec = codec;
  report.segment_bytes = decision->segment_bytes;
  report.bytes_on_wire = counters.bytes_on_wire;
  report.predicted_seconds = decision->predicted_seconds;
  report.non_finite = counters.non_finite;
  report.n_saturated = counters.n_saturated;
  return {};
}

Call Engine::make_call(const Job& job, const Decision& decision, CodecSpec codec) {
  const Seconds timeout = job.options.timeout.count() > 0 ? job.options.timeout : world_.config.timeout;
  return {.program = decision.program,
          .signature = {.sequence = sequence_++,
                        .collective = job.collective,
                        .dtype = job.out.dtype,
                        .op = job.op,
                        .codec = codec,
                        .root = job.root,
                        .plan = decision.fingerprint,
                        .count = job.count},
          .in = job.in.data,
          .out = job.out.data,
          .segment = decision.segment_bytes / size_of(job.out.dtype),
          .residual = job.options.residual,
          .tag = {.step = job.options.step, .bucket = job.options.bucket, .element_offset = 0},
          .timeout = timeout};
}

}  // namespace tern
