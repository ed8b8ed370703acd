#include "bench/model_gradients.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "trainer/config/run_config.h"
#include "trainer/data/dataset.h"
#include "trainer/data/token_file.h"
#include "trainer/kernels/adamw.h"
#include "trainer/kernels/gradient_norm.h"
#include "trainer/model/model.h"
#include "trainer/storage/mapped_file.h"

namespace tern::bench {
namespace {

using trainer::Dataset;
using trainer::MappedFile;
using trainer::Model;
using trainer::RunConfig;
using trainer::TokenBatch;
using trainer::TokenFile;

Result<RunConfig> read_run(const GradientsRequest& request) {
  std::vector<std::string> assignments;
  if (!request.text.empty()) assignments.push_back("data.text=" + request.text);
  TERN_ASSIGN(RunConfig run, RunConfig::from_file(request.run_file, assignments));
  if (run.model.vocab < trainer::kByteVocabulary) {
    return error(Code::kInvalidArgument, "{}: model.vocab_size {} is smaller than the {} bytes of a text",
                 request.run_file, run.model.vocab, trainer::kByteVocabulary);
  }
  TERN_TRY(TokenFile::find_text(run.data.text));
  return run;
}

/// One rank's training, on passes of as many sequences as one gradient is of.
class Training {
 public:
  Training(const RunConfig& run, const Dataset& dataset, Model<float> model)
      : run_(run), dataset_(dataset), model_(std::move(model)) {
    const auto n = static_cast<size_t>(model_.layout().n_elements());
    params_.resize(n);
    gradients_.resize(n);
    m_.resize(n);
    v_.resize(n);
    trainer::initialise<float>(run_.model, model_.layout(), run_.run.seed, 0, params_);
  }

  /// Mean loss of the next n_passes passes; gradients() is then that of it.
  double differentiate(int64_t n_passes) {
    std::ranges::fill(gradients_, 0.0F);
    const auto n_tokens = static_cast<double>(n_passes * model_.shape().rows());
    double loss_sum = 0;
    for (int64_t pass = 0; pass < n_passes; ++pass) {
      dataset_.train_samples(next_sample_, model_.shape().batch, batch_);
      next_sample_ += static_cast<uint64_t>(model_.shape().batch);
      loss_sum += model_.forward(params_, batch_.inputs, batch_.targets);
      model_.backward(params_, gradients_, static_cast<float>(1 / n_tokens), {});
    }
    return loss_sum / n_tokens;
  }

  /// One update by the gradients, as the trainer makes it.
  void update() {
    const trainer::OptimizerConfig& o = run_.optimizer;
    const double norm = std::sqrt(trainer::sum_of_squares(model_.team(), std::span<const float>(gradients_)));
    const trainer::AdamW adamw{.step = n_updates_ + 1,
                               .lr = run_.schedule.at(n_updates_),
                               .beta1 = o.beta1,
                               .beta2 = o.beta2,
                               .eps = o.eps,
                               .weight_decay = o.weight_decay,
                               .grad_scale = o.clip_norm > 0 ? std::min(1.0, o.clip_norm / norm) : 1.0};
    trainer::adamw_step<float>(model_.team(), adamw, params_, gradients_, m_, v_);
    ++n_updates_;
  }

  std::span<const float> matrices() const {
    return std::span(gradients_).first(static_cast<size_t>(model_.layout().one_dimensional_begin()));
  }

 private:
  const RunConfig& run_;
  const Dataset& dataset_;
  Model<float> model_;
  std::vector<float> params_, gradients_, m_, v_;
  TokenBatch batch_;
  uint64_t next_sample_ = 0;
  int64_t n_updates_ = 0;
};

}  // namespace

Result<ModelGradients> model_gradients(const GradientsRequest& request) {
  TERN_ASSIGN(const RunConfig run, read_run(request));
  TERN_ASSIGN(const MappedFile text, MappedFile::open(run.data.text));
  const auto bytes = text.bytes();
  const auto micro =
      request.n_sequences > 0 ? int64_t{request.n_sequences} : run.batch.micro.value_or(int64_t{1});
  TERN_ASSIGN(const Dataset dataset,
              Dataset::create({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()},
                              {.sequence_length = run.data.sequence_length,
                               .validation_fraction = run.data.validation_fraction,
                               .shuffle_seed = run.data.shuffle_seed,
                               .train_batch = micro * request.n_ranks,
                               .needs_validation = false}));
  const int n_cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  TERN_ASSIGN(auto model, Model<float>::create(run.model, {static_cast<int>(micro), run.data.sequence_length},
                                               run.run.threads > 0 ? run.run.threads : n_cores));
  Training training(run, dataset, std::move(model));

  ModelGradients result;
  result.n_sequences = static_cast<int>(micro);
  result.n_parameters = trainer::parameter_count(run.model);
  const int64_t n_passes = std::max(int64_t{1}, run.batch.train.value_or(micro) / micro);
  for (int step = 0; step < request.n_steps; ++step) {
    const double loss = training.differentiate(n_passes);
    if (step == 0) result.first_loss = loss;
    training.update();
  }
  for (int rank = 0; rank < request.n_ranks; ++rank) {
    result.last_loss += training.differentiate(1) / request.n_ranks;
    const auto gradient = training.matrices();
    if (trainer::first_non_finite(gradient) >= 0) {
      return error(Code::kInvalidArgument, "after {} steps the gradient is not finite; {} trains no model",
                   request.n_steps, request.run_file);
    }
    result.of_ranks.emplace_back(gradient.begin(), gradient.end());
  }
  if (request.n_steps == 0) result.first_loss = result.last_loss;
  return result;
}

}  // namespace tern::bench
