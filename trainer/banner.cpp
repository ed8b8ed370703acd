#include "trainer/banner.h"

#include <algorithm>

namespace tern::trainer {
namespace {

double mb(int64_t n_bytes) {
  return static_cast<double>(n_bytes) / 1e6;
}

std::string schedule_text(const RunConfig& config) {
  const Schedule& schedule = config.schedule;
  if (schedule.kind == Schedule::Kind::kConstant) return fmt::format("lr {:g}, constant", schedule.base_lr);
  const std::string_view shape = schedule.linear_warmup ? "linear" : "logarithmic";
  if (schedule.kind == Schedule::Kind::kWarmupCosine) {
    return fmt::format("{} warm-up over {} steps to lr {:g}, cosine to {:g} of it at step {}", shape,
                       schedule.warmup_steps, schedule.base_lr, schedule.cos_min_ratio, schedule.total_steps);
  }
  const std::string end = schedule.kind == Schedule::Kind::kWarmupDecay
                              ? fmt::format("linear to 0 at step {}", schedule.total_steps)
                              : std::string("then constant");
  return fmt::format("{} warm-up over {} steps from lr {:g} to {:g}{}, {}", shape, schedule.warmup_steps,
                     schedule.min_lr, schedule.max_lr,
                     config.max_lr_from_optimizer ? " (warmup_max_lr absent: the optimizer's lr)" : "", end);
}

std::string codec_text(const RunPlan& plan, const BucketPlan& buckets) {
  if (plan.codec.is_dense()) return "none (dense fp32)";
  const auto n_encoded = std::count_if(buckets.buckets().begin(), buckets.buckets().end(),
                                       [](const Bucket& b) { return b.compressible; });
  if (n_encoded == 0) {
    return fmt::format(
        "{} is not used: none of the {} buckets is large enough to pay, all gradients go dense",
        to_string(plan.codec), buckets.size());
  }
  if (plan.codec.is_automatic)
    return fmt::format(
        "{}: as the planner finds that it pays in {} of {} buckets{}; dense for the first {} steps",
        to_string(plan.codec), n_encoded, buckets.size(), plan.residual ? ", with residual" : "",
        plan.dense_steps);
  const double bits = info(plan.codec.spec.id).bits_per_element(plan.codec.spec, sizeof(float));
  return fmt::format(
      "{}, {:.3g} bits per element, gradients 1/{:.1f} of dense in {} of {} buckets{}; dense for the first "
      "{} steps",
      to_string(plan.codec), bits, 32.0 / bits, n_encoded, buckets.size(),
      plan.residual ? ", with residual" : "", plan.dense_steps);
}

std::string memory_text(const RunConfig& config, const RunPlan& plan, int64_t free_bytes) {
  const MemoryNeed need = predict_memory(config, plan);
  const std::string residuals =
      need.residuals > 0 ? fmt::format(" + residuals {:.1f}", mb(need.residuals)) : std::string();
  const std::string left =
      free_bytes >= 0 ? fmt::format("; {:.0f} MB free here", mb(free_bytes)) : std::string();
  return fmt::format(
      "{:.1f} MB per rank: parameters {:.1f} + gradients {:.1f} + moments {:.1f}{} + activations {:.1f}{}",
      mb(need.total()), mb(need.parameters), mb(need.gradients), mb(need.moments), residuals,
      mb(need.activations), left);
}

}  // namespace

std::string with_commas(int64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (size_t idx = 0; idx < digits.size(); ++idx) {
    const bool group_starts = idx > 0 && (digits.size() - idx) % 3 == 0 && digits[idx - 1] != '-';
    if (group_starts) text += ',';
    text += digits[idx];
  }
  return text;
}

std::string banner(const RunConfig& config, const RunPlan& plan, int64_t free_bytes) {
  const LlamaConfig& model = config.model;
  const ParameterLayout layout(model);
  const BucketPlan buckets(layout, plan.buckets);
  const int64_t largest = buckets.size() > 0 ? buckets[buckets.size() - 1].size() : 0;
  std::string text;
  const auto line = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<11} {}\n", name, value);
  };
  text += "tern-train\n";
  line("model",
       fmt::format("{} parameters: {} layers, hidden {}, intermediate {}, heads {}/{} of {}, vocabulary {}{}",
                   with_commas(parameter_count(model)), model.layers, model.hidden, model.intermediate,
                   model.heads, model.kv_heads, model.head_dim, model.vocab,
                   model.tie_embeddings ? ", tied" : ""));
  line("data", fmt::format("{}, sequences of {} bytes", config.data.text, config.data.sequence_length));
  line("batch", fmt::format("{} sequences = {} per pass x {} passes x {} ranks; {} tokens per step",
                            plan.batch.train, plan.batch.micro, plan.batch.accumulation, plan.buckets.n_ranks,
                            with_commas(plan.tokens_per_step(config))));
  line("optimizer",
       fmt::format("AdamW, {}{}", schedule_text(config),
                   config.optimizer.clip_norm > 0
                       ? fmt::format(", gradient norm clipped to {:g}", config.optimizer.clip_norm)
                       : std::string()));
  line("precision", "fp32");
  line("memory", memory_text(config, plan, free_bytes));
  line("zero", fmt::format("stage {}, {} buckets of at most {} elements, {}", config.zero.stage,
                           buckets.size(), with_commas(largest),
                           config.zero.overlap ? "reduced during backward" : "reduced after backward"));
  line("codec", codec_text(plan, buckets));
  line("threads", fmt::format("{} per rank", plan.threads));
  line("run",
       fmt::format("{} steps into {}, seed {}", config.run.steps, config.run.output_dir, config.run.seed));
  return text;
}

}  // namespace tern::trainer
