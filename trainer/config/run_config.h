// A whole training run as one value: what RUN.json says, checked.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "runtime/base/status.h"
#include "trainer/config/batch.h"
#include "trainer/config/schedule.h"
#include "trainer/model/model_config.h"

namespace tern::trainer {

struct DataConfig {
  std::string text;
  int sequence_length = 256;
  double validation_fraction = 0.05;
  uint64_t shuffle_seed = 1;
  int prefetch_threads = 1;
  std::string cache_dir;
};

struct OptimizerConfig {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  double clip_norm = 0.0;  ///< 0: off
};

struct ZeroConfig {
  int stage = 0;  ///< 0 or 2
  int64_t bucket_elements = 500'000'000;
  bool overlap = true;
};

struct CommunicationConfig {
  std::string codec = "none";          ///< the grammar of parse_codec_choice
  std::optional<bool> residual;        ///< absent: as the codec demands
  std::optional<int64_t> dense_steps;  ///< absent: default_dense_steps
  int64_t telemetry_every = 100;       ///< steps; 0: never
};

struct RunOptions {
  int64_t steps = 100;
  uint64_t seed = 1;
  std::string output_dir = "tern-run";
  int64_t checkpoint_every = 0;
  int64_t checkpoint_keep = 2;
  std::string resume;
  bool overwrite = false;
  int64_t val_every = 0;
  int64_t val_batches = 4;
  int64_t steps_per_print = 10;
  std::string sample_prompt;
  int sample_tokens = 200;
  double sample_temperature = 0.8;
  bool measure_peak = true;
  int threads = 0;
};

struct RunConfig {
  LlamaConfig model;
  DataConfig data;
  BatchRequest batch;
  OptimizerConfig optimizer;
  Schedule schedule;
  bool max_lr_from_optimizer =
      false;  ///< warmup_max_lr was absent, so the schedule rises to the optimiser's lr
  ZeroConfig zero;
  CommunicationConfig communication;
  RunOptions run;
  nlohmann::json resolved;  ///< every key with its value, defaults included

  /// From a parsed RUN.json whose `model` and `deepspeed` may be paths of JSON files.
  ///
  /// assignments: `key.path=value` texts that change the input first (--set).
  /// Errors: kNotFound, kIo (a file), kInvalidArgument (one sentence naming the key and what is allowed).
  static Result<RunConfig> from_json(nlohmann::json input, std::span<const std::string> assignments = {});
  static Result<RunConfig> from_file(const std::string& path, std::span<const std::string> assignments = {});
};

}  // namespace tern::trainer
