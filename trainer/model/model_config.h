// The shape of a Llama-style dense model, and the counts that follow from it (parameters, flops, bytes).
#pragma once

#include <cstdint>

#include "runtime/base/status.h"

namespace tern::trainer {

/// How rotary frequencies are stretched beyond the length a model was pre-trained on (config.json
/// `rope_scaling`).
struct RopeScaling {
  enum class Kind : uint8_t {
    kNone,
    kLinear,  ///< every frequency divided by `factor` (Chen et al., 2023)
    kLlama3,  ///< only the low frequencies divided, with a smooth transition (Llama 3.1, 2024)
  };
  Kind kind = Kind::kNone;
  double factor = 1.0;
  double low_freq_factor = 1.0;                 ///< kLlama3 only
  double high_freq_factor = 4.0;                ///< kLlama3 only
  int original_max_position_embeddings = 8192;  ///< kLlama3 only
};

/// Names and defaults follow Hugging Face's Llama config.json; `max_position` is only a limit on the sequence
/// length.
struct LlamaConfig {
  int vocab = 256;
  int hidden = 384;
  int intermediate = 1024;
  int layers = 6;
  int heads = 6;
  int kv_heads = 6;
  int head_dim = 64;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling = {};
  double rms_norm_eps = 1e-5;
  bool tie_embeddings = false;
  int max_position = 2048;
  double initializer_range = 0.02;

  /// Columns of the attention output, and of the query projection: heads * head_dim.
  int query_width() const { return heads * head_dim; }
  /// Columns of the key (and of the value) projection: kv_heads * head_dim.
  int kv_width() const { return kv_heads * head_dim; }
};

/// Ok, or kInvalidArgument with one sentence naming the first key that cannot be, its value and what is
/// allowed.
Status validate(const LlamaConfig& config);

/// Exact number of trainable parameters; a tied head is counted once. No padding.
int64_t parameter_count(const LlamaConfig& config);

/// Parameters that take part in a matrix product for every token: projections and the head (tied or not),
/// without the embedding look-up and the norms.
int64_t matmul_parameter_count(const LlamaConfig& config);

/// Floating-point operations of one training step per token of a sequence of `tokens` tokens.
///
/// 6 * matmul parameters + 12 * layers * heads * head_dim * tokens: no credit for causality, none for
/// recomputing. Source: the rule of torchtitan's MFU (2024), after Chowdhery et al., PaLM, appendix B (2022).
double flops_per_token(const LlamaConfig& config, int tokens);

}  // namespace tern::trainer
