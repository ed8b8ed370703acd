#include "trainer/config/run_config.h"

#include "runtime/base/json_text.h"
#include "trainer/config/keys.h"
#include "trainer/config/schema.h"

namespace tern::trainer {
namespace {

std::optional<int64_t> optional_integer(const ConfigValues& values, std::string_view path) {
  if (!values.has(path)) return std::nullopt;
  return values.integer(path);
}

int small(const ConfigValues& values, std::string_view path) {
  return static_cast<int>(values.integer(path));  // the table keeps it within int
}

/// Replaces `input[section]` by the file it names, when it is a text.
Status expand_path(nlohmann::json& input, const char* section) {
  if (!input.is_object() || !input.contains(section) || !input[section].is_string()) return {};
  const auto path = input[section].get<std::string>();
  Result<nlohmann::json> file = read_json_file(path);
  if (!file.ok()) return error(file.error().code, "{}: {}", section, file.error().message);
  input[section] = std::move(*file);
  return {};
}

RopeScaling read_rope_scaling(const ConfigValues& values) {
  RopeScaling scaling;
  const std::string_view key =
      values.has("model.rope_scaling.rope_type") ? "model.rope_scaling.rope_type" : "model.rope_scaling.type";
  if (!values.has(key)) return scaling;
  const std::string type = values.text(key);
  if (type == "linear") scaling.kind = RopeScaling::Kind::kLinear;
  if (type == "llama3") scaling.kind = RopeScaling::Kind::kLlama3;
  scaling.factor = values.number("model.rope_scaling.factor");
  scaling.low_freq_factor = values.number("model.rope_scaling.low_freq_factor");
  scaling.high_freq_factor = values.number("model.rope_scaling.high_freq_factor");
  scaling.original_max_position_embeddings =
      small(values, "model.rope_scaling.original_max_position_embeddings");
  return scaling;
}

Result<LlamaConfig> read_model(const ConfigValues& values) {
  LlamaConfig model;
  model.vocab = small(values, "model.vocab_size");
  model.hidden = small(values, "model.hidden_size");
  model.intermediate = small(values, "model.intermediate_size");
  model.layers = small(values, "model.num_hidden_layers");
  model.heads = small(values, "model.num_attention_heads");
  model.kv_heads =
      static_cast<int>(optional_integer(values, "model.num_key_value_heads").value_or(model.heads));
  if (!values.has("model.head_dim") && model.hidden % model.heads != 0) {
    return error(Code::kInvalidArgument,
                 "model.hidden_size {} is not a multiple of model.num_attention_heads {}, and model.head_dim "
                 "is absent",
                 model.hidden, model.heads);
  }
  model.head_dim =
      static_cast<int>(optional_integer(values, "model.head_dim").value_or(model.hidden / model.heads));
  model.rope_theta = values.number("model.rope_theta");
  model.rope_scaling = read_rope_scaling(values);
  model.rms_norm_eps = values.number("model.rms_norm_eps");
  model.tie_embeddings = values.flag("model.tie_word_embeddings");
  model.max_position = small(values, "model.max_position_embeddings");
  model.initializer_range = values.number("model.initializer_range");
  TERN_TRY(validate(model));
  return model;
}

Result<DataConfig> read_data(const ConfigValues& values, const LlamaConfig& model) {
  if (!values.has("data.text")) {
    return error(Code::kInvalidArgument, "data.text is absent: give the path of the text to learn");
  }
  DataConfig data;
  data.text = values.text("data.text");
  data.sequence_length = small(values, "data.sequence_length");
  data.validation_fraction = values.number("data.validation_fraction");
  data.shuffle_seed = static_cast<uint64_t>(values.integer("data.shuffle_seed"));
  data.prefetch_threads = small(values, "data.prefetch_threads");
  data.cache_dir = values.text("data.cache_dir");
  if (data.sequence_length > model.max_position) {
    return error(Code::kInvalidArgument,
                 "data.sequence_length {} is longer than model.max_position_embeddings {}",
                 data.sequence_length, model.max_position);
  }
  return data;
}

OptimizerConfig read_optimizer(const ConfigValues& values) {
  OptimizerConfig optimizer;
  optimizer.beta1 = values.number_at("deepspeed.optimizer.params.betas", 0);
  optimizer.beta2 = values.number_at("deepspeed.optimizer.params.betas", 1);
  optimizer.eps = values.number("deepspeed.optimizer.params.eps");
  optimizer.weight_decay = values.number("deepspeed.optimizer.params.weight_decay");
  optimizer.clip_norm = values.number("deepspeed.gradient_clipping");
  return optimizer;
}

Result<Schedule> read_schedule(const ConfigValues& values) {
  Schedule schedule;
  schedule.base_lr = values.number("deepspeed.optimizer.params.lr");
  schedule.max_lr = schedule.base_lr;
  if (!values.has("deepspeed.scheduler.type")) return schedule;
  const std::string type = values.text("deepspeed.scheduler.type");
  schedule.kind = type == "WarmupLR"        ? Schedule::Kind::kWarmup
                  : type == "WarmupDecayLR" ? Schedule::Kind::kWarmupDecay
                                            : Schedule::Kind::kWarmupCosine;
  if (values.has("deepspeed.scheduler.params.warmup_max_lr")) {
    schedule.max_lr = values.number("deepspeed.scheduler.params.warmup_max_lr");
  }
  schedule.linear_warmup = values.text("deepspeed.scheduler.params.warmup_type") == "linear";
  schedule.min_lr = values.number("deepspeed.scheduler.params.warmup_min_lr");
  schedule.warmup_steps = values.integer("deepspeed.scheduler.params.warmup_num_steps");
  schedule.warmup_min_ratio = values.number("deepspeed.scheduler.params.warmup_min_ratio");
  schedule.cos_min_ratio = values.number("deepspeed.scheduler.params.cos_min_ratio");
  const auto total = optional_integer(values, "deepspeed.scheduler.params.total_num_steps");
  if (schedule.kind != Schedule::Kind::kWarmup && !total) {
    return error(
        Code::kInvalidArgument,
        "deepspeed.scheduler.params.total_num_steps is absent; {} needs the step at which its decay ends",
        type);
  }
  schedule.total_steps = total.value_or(0);
  return schedule;
}

RunOptions read_run(const ConfigValues& values) {
  RunOptions run;
  run.steps = values.integer("run.steps");
  run.seed = static_cast<uint64_t>(values.integer("run.seed"));
  run.output_dir = values.text("run.output_dir");
  run.checkpoint_every = values.integer("run.checkpoint_every");
  run.checkpoint_keep = values.integer("run.checkpoint_keep");
  run.resume = values.text("run.resume");
  run.overwrite = values.flag("run.overwrite");
  run.val_every = values.integer("run.val_every");
  run.val_batches = values.integer("run.val_batches");
  run.steps_per_print = values.integer("deepspeed.steps_per_print");
  run.sample_prompt = values.text("run.sample_prompt");
  run.sample_tokens = small(values, "run.sample_tokens");
  run.sample_temperature = values.number("run.sample_temperature");
  run.measure_peak = values.flag("run.measure_peak");
  run.threads = small(values, "run.threads");
  return run;
}

CommunicationConfig read_communication(const ConfigValues& values) {
  CommunicationConfig communication;
  communication.codec = values.text("communication.codec");
  if (values.has("communication.residual")) communication.residual = values.flag("communication.residual");
  communication.dense_steps = optional_integer(values, "communication.dense_steps");
  communication.telemetry_every = values.integer("communication.telemetry_every");
  return communication;
}

}  // namespace

Result<RunConfig> RunConfig::from_json(nlohmann::json input, std::span<const std::string> assignments) {
  // A file named by --set model=path must be there before --set model.key=value changes it.
  for (const std::string& assignment : assignments) {
    if (assignment.substr(0, assignment.find('=')).find('.') == std::string::npos) {
      TERN_TRY(set_value(input, assignment));
    }
  }
  TERN_TRY(expand_path(input, "model"));
  TERN_TRY(expand_path(input, "deepspeed"));
  for (const std::string& assignment : assignments) {
    if (assignment.substr(0, assignment.find('=')).find('.') != std::string::npos) {
      TERN_TRY(set_value(input, assignment));
    }
  }
  TERN_ASSIGN(const ConfigValues values, resolve(input, run_keys()));
  RunConfig config;
  TERN_ASSIGN(config.model, read_model(values));
  TERN_ASSIGN(config.data, read_data(values, config.model));
  config.batch = {optional_integer(values, "deepspeed.train_batch_size"),
                  optional_integer(values, "deepspeed.train_micro_batch_size_per_gpu"),
                  optional_integer(values, "deepspeed.gradient_accumulation_steps")};
  config.optimizer = read_optimizer(values);
  TERN_ASSIGN(config.schedule, read_schedule(values));
  config.max_lr_from_optimizer = config.schedule.kind != Schedule::Kind::kConstant &&
                                 !values.has("deepspeed.scheduler.params.warmup_max_lr");
  config.zero.stage = static_cast<int>(values.integer("deepspeed.zero_optimization.stage"));
  config.zero.bucket_elements = values.integer("deepspeed.zero_optimization.reduce_bucket_size");
  config.zero.overlap = values.flag("deepspeed.zero_optimization.overlap_comm");
  config.communication = read_communication(values);
  config.run = read_run(values);
  config.resolved = values.nested();
  return config;
}

Result<RunConfig> RunConfig::from_file(const std::string& path, std::span<const std::string> assignments) {
  TERN_ASSIGN(nlohmann::json input, read_json_file(path));
  return from_json(std::move(input), assignments);
}

}  // namespace tern::trainer
