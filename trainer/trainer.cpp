#include "trainer/trainer.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "trainer/step_agreement.h"

namespace tern::trainer {

/// In order of construction; later ones point at earlier ones.
struct Trainer::Parts {
  Parts(Communicator& comm, const RunConfig& config, const RunPlan& plan, Model<float> a_model,
        const Dataset& a_dataset)
      : model(std::move(a_model)),
        dataset(a_dataset),
        buckets(model.layout(), plan.buckets),
        optimizer(comm, buckets, config.zero.stage) {}

  std::span<float> params() const {
    return memory.as<float>().first(static_cast<size_t>(buckets.n_padded()));
  }
  /// What the model sees: without the padding of the buckets.
  std::span<float> unpadded(std::span<float> flat) const {
    return flat.first(static_cast<size_t>(model.layout().n_elements()));
  }

  Model<float> model;
  Dataset dataset;
  BucketPlan buckets;
  Allocation memory;  // of the parameters; outlives the collectives on it
  ShardedOptimizer optimizer;
  std::optional<GradientReducer> reducer;
  FileId text;
  std::optional<Prefetcher> prefetcher;
};

Result<std::unique_ptr<Trainer>> Trainer::create(Communicator& comm, const RunConfig& config,
                                                 const RunPlan& plan, const TokenFile& tokens) {
  TERN_ASSIGN(const Dataset dataset,
              Dataset::create(tokens.tokens(),
                              {config.data.sequence_length, config.data.validation_fraction,
                               config.data.shuffle_seed, plan.batch.train, config.run.val_batches > 0}));
  const Shape shape{static_cast<int>(plan.batch.micro), config.data.sequence_length};
  TERN_ASSIGN(Model<float> model, Model<float>::create(config.model, shape, plan.threads));
  auto parts = std::make_unique<Parts>(comm, config, plan, std::move(model), dataset);
  parts->text = tokens.source();
  TERN_ASSIGN(GradientReducer reducer,
              GradientReducer::create(comm, parts->buckets,
                                      {config.zero.stage, config.zero.overlap, plan.codec, plan.residual}));
  parts->reducer.emplace(std::move(reducer));
  TERN_ASSIGN(parts->memory, comm.allocate(static_cast<size_t>(parts->buckets.n_padded()) * sizeof(float)));
  std::ranges::fill(parts->params(), 0.0F);
  initialise(config.model, parts->model.layout(), config.run.seed, 0, parts->unpadded(parts->params()));
  return std::unique_ptr<Trainer>(new Trainer(comm, config, plan, std::move(parts)));
}

Trainer::Trainer(Communicator& comm, const RunConfig& config, const RunPlan& plan,
                 std::unique_ptr<Parts> parts)
    : comm_(&comm), config_(config), plan_(plan), parts_(std::move(parts)) {}
Trainer::~Trainer() = default;

std::span<const float> Trainer::parameters() const {
  return parts_->unpadded(parts_->params());
}

TrainState Trainer::state() {
  TrainState state;
  state.layout = &parts_->model.layout();
  state.params = parts_->params();
  state.ranges = parts_->optimizer.ranges();
  state.m = parts_->optimizer.first_moment();
  state.v = parts_->optimizer.second_moment();
  state.residual = parts_->reducer->residual();
  state.replicated = config_.zero.stage == 0;
  state.text = parts_->text;
  state.config = config_.resolved;
  return state;
}

const TokenBatch& Trainer::next_batch(StepRecord& record) {
  const auto start = Clock::now();
  if (!parts_->prefetcher) {
    const Shard shard{comm_->rank(), comm_->size(), plan_.batch.train, plan_.batch.micro,
                      plan_.batch.accumulation};
    parts_->prefetcher.emplace(parts_->dataset, shard, progress_.next_sample, config_.data.prefetch_threads);
  }
  const TokenBatch& batch = parts_->prefetcher->next();
  record.data_wait_seconds += seconds_since(start);
  return batch;
}

Result<double> Trainer::run_passes(StepRecord& record) {
  Parts& parts = *parts_;
  const std::span<const float> params = parts.unpadded(parts.params());
  const std::span<float> gradients = parts.unpadded(parts.reducer->gradients());
  const auto scale = static_cast<float>(1.0 / static_cast<double>(record.tokens));
  double loss_sum = 0;
  for (int64_t pass = 0; pass < plan_.batch.accumulation; ++pass) {
    const TokenBatch& batch = next_batch(record);
    loss_sum += parts.model.forward(params, batch.inputs, batch.targets);
    std::function<void(int)> ready;
    if (pass + 1 == plan_.batch.accumulation) {
      ready = [&parts](int param_idx) { parts.reducer->parameter_ready(param_idx); };
    }
    parts.model.backward(params, gradients, scale, ready);
  }
  TERN_TRY(parts.reducer->finish(record.gradients));
  return loss_sum;
}

Result<StepOutcome> Trainer::step(bool stop_requested) {
  const auto start = Clock::now();
  Parts& parts = *parts_;
  StepOutcome outcome;
  StepRecord& record = outcome.record;
  const bool compress = progress_.step >= plan_.dense_steps && !plan_.codec.is_dense();
  record.step = progress_.step + 1;
  record.tokens = plan_.tokens_per_step(config_);
  const int64_t every = config_.communication.telemetry_every;
  const bool measures = compress && every > 0 && record.step % every == 0;
  record.lr = config_.schedule.at(progress_.n_updates);

  parts.reducer->begin_step({.step = static_cast<uint32_t>(record.step),
                             .compress = compress,
                             .measures_error = measures,
                             .hidden_seconds = hidden_seconds_});
  TERN_ASSIGN(const double loss_sum, run_passes(record));
  Team& team = parts.model.team();
  StepVote vote;
  vote.loss_sum = loss_sum;
  vote.sum_of_squares = parts.optimizer.sum_of_squares(team, parts.reducer->gradients());
  vote.bad_element = static_cast<double>(
      parts.reducer->non_finite() ? parts.reducer->non_finite()->element_idx : int64_t{-1});
  vote.stop = stop_requested ? 1 : 0;
  vote.overlap_seconds = parts.reducer->overlap_seconds();
  TERN_ASSIGN(StepVerdict verdict,
              agree_on_step(*comm_, vote, config_.zero.stage == 0, parts.model.layout(), record.parameters));

  record.loss = verdict.loss_sum / static_cast<double>(record.tokens);
  record.grad_norm = std::sqrt(verdict.sum_of_squares);
  record.skipped = std::move(verdict.skip);
  outcome.stop = verdict.stop;
  hidden_seconds_ = verdict.overlap_seconds;
  note_codecs(record, measures);
  ++progress_.step;
  progress_.next_sample += static_cast<uint64_t>(plan_.batch.train);
  if (record.skipped.empty()) {
    n_skipped_in_a_row_ = 0;
    ++progress_.n_updates;
    TERN_TRY(update(record));
  } else {
    parts.reducer->roll_back_residual();
    zero_gradients();
    if (++n_skipped_in_a_row_ == kMostSkippedInARow) {
      // Rank 0 at fault by convention: every rank comes to this end by itself, and one must say it.
      return error_at(0, Code::kInvalidArgument,
                      "{} steps in a row could not be applied, the last because {}; lower the "
                      "learning rate or clip the gradient",
                      kMostSkippedInARow, record.skipped);
    }
  }
  record.step_seconds = seconds_since(start);
  return outcome;
}

void Trainer::note_codecs(StepRecord& record, bool measures) {
  const CodecUse& use = parts_->reducer->codec_use();
  record.codec = use.text();
  record.n_saturated = use.n_saturated;
  record.n_non_finite = use.n_non_finite;
  if (!measures) return;
  CodecTelemetry telemetry;
  for (const EncodingError& error : use.errors) telemetry.vnmse.push_back(error.vnmse());
  double sum = 0;
  for (const float r : parts_->reducer->residual()) sum += static_cast<double>(r) * static_cast<double>(r);
  telemetry.residual_norm = std::sqrt(sum);
  record.telemetry = std::move(telemetry);
}

Status Trainer::update(StepRecord& record) {
  constexpr double kGuard = 1e-6;  // DeepSpeed adds it to the norm before it compares
  const OptimizerConfig& optimizer = config_.optimizer;
  const double excess = optimizer.clip_norm > 0 ? (record.grad_norm + kGuard) / optimizer.clip_norm : 1.0;
  AdamW adamw;
  adamw.step = progress_.n_updates;
  adamw.lr = record.lr;
  adamw.beta1 = optimizer.beta1;
  adamw.beta2 = optimizer.beta2;
  adamw.eps = optimizer.eps;
  adamw.weight_decay = optimizer.weight_decay;
  adamw.grad_scale = 1.0 / std::max(1.0, excess);
  parts_->optimizer.start_update(parts_->model.team(), adamw, parts_->params(), parts_->reducer->gradients());
  zero_gradients();  // while the updated parameters travel
  return parts_->optimizer.finish_update(record.parameters);
}

void Trainer::zero_gradients() {
  const std::span<float> gradients = parts_->reducer->gradients();
  parts_->model.team().for_range(
      static_cast<int64_t>(gradients.size()), kParameterAlignment,
      [&](Range range) { std::fill(gradients.begin() + range.begin, gradients.begin() + range.end, 0.0F); });
}

Result<double> Trainer::validate() {
  Parts& parts = *parts_;
  const int64_t n_used = std::min(parts.dataset.n_validation(), config_.run.val_batches * plan_.batch.train);
  if (n_used == 0) return 0.0;
  const int64_t per_round = plan_.batch.micro * comm_->size();
  TokenBatch batch;
  double loss_sum = 0;
  for (int64_t first = 0; first < n_used; first += per_round) {
    const int64_t mine = first + comm_->rank() * plan_.batch.micro;
    if (mine >= n_used) break;
    parts.dataset.validation_samples(mine, plan_.batch.micro, n_used, batch);
    loss_sum += parts.model.forward(parts.unpadded(parts.params()), batch.inputs, batch.targets);
  }
  std::vector<double> all(static_cast<size_t>(comm_->size()));
  TERN_TRY(comm_->all_gather(std::span<const double>(&loss_sum, 1), std::span<double>(all)));
  double sum = 0;
  for (const double theirs : all) sum += theirs;
  return sum / static_cast<double>(n_used * config_.data.sequence_length);
}

}  // namespace tern::trainer
