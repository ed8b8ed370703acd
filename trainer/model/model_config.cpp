#include "trainer/model/model_config.h"

#include <cmath>
#include <string_view>

namespace tern::trainer {

namespace {

Status at_least_one(std::string_view key, int value) {
  if (value >= 1) return {};
  return error(Code::kInvalidArgument, "{} is {}; it must be at least 1", key, value);
}

Status positive(std::string_view key, double value) {
  if (std::isfinite(value) && value > 0) return {};
  return error(Code::kInvalidArgument, "{} is {}; it must be positive and finite", key, value);
}

Status validate_heads(const LlamaConfig& c) {
  if (c.heads % c.kv_heads != 0)
    return error(Code::kInvalidArgument, "num_attention_heads {} is not a multiple of num_key_value_heads {}",
                 c.heads, c.kv_heads);
  if (c.head_dim % 2 != 0)
    return error(Code::kInvalidArgument, "head_dim {} is odd; rotary embedding turns pairs of lanes",
                 c.head_dim);
  return {};
}

Status validate_rope(const RopeScaling& s) {
  if (s.kind == RopeScaling::Kind::kNone) return {};
  TERN_TRY(positive("rope_scaling.factor", s.factor));
  if (s.kind == RopeScaling::Kind::kLinear) return {};
  TERN_TRY(positive("rope_scaling.low_freq_factor", s.low_freq_factor));
  TERN_TRY(at_least_one("rope_scaling.original_max_position_embeddings", s.original_max_position_embeddings));
  if (std::isfinite(s.high_freq_factor) && s.high_freq_factor > s.low_freq_factor) return {};
  return error(Code::kInvalidArgument, "rope_scaling.high_freq_factor {} must be above low_freq_factor {}",
               s.high_freq_factor, s.low_freq_factor);
}

int64_t layer_matrices(const LlamaConfig& c) {
  const auto hidden = static_cast<int64_t>(c.hidden);
  return hidden * (2 * c.query_width() + 2 * c.kv_width()) + 3 * hidden * c.intermediate;
}

}  // namespace

Status validate(const LlamaConfig& c) {
  TERN_TRY(at_least_one("vocab_size", c.vocab));
  TERN_TRY(at_least_one("hidden_size", c.hidden));
  TERN_TRY(at_least_one("intermediate_size", c.intermediate));
  TERN_TRY(at_least_one("num_hidden_layers", c.layers));
  TERN_TRY(at_least_one("num_attention_heads", c.heads));
  TERN_TRY(at_least_one("num_key_value_heads", c.kv_heads));
  TERN_TRY(at_least_one("head_dim", c.head_dim));
  TERN_TRY(at_least_one("max_position_embeddings", c.max_position));
  TERN_TRY(positive("rope_theta", c.rope_theta));
  TERN_TRY(positive("rms_norm_eps", c.rms_norm_eps));
  if (!std::isfinite(c.initializer_range) || c.initializer_range < 0)
    return error(Code::kInvalidArgument, "initializer_range is {}; it must be finite and not negative",
                 c.initializer_range);
  TERN_TRY(validate_heads(c));
  return validate_rope(c.rope_scaling);
}

int64_t parameter_count(const LlamaConfig& c) {
  const auto hidden = static_cast<int64_t>(c.hidden);
  const int64_t per_layer = layer_matrices(c) + 2 * hidden;
  return c.vocab * hidden * (c.tie_embeddings ? 1 : 2) + c.layers * per_layer + hidden;
}

int64_t matmul_parameter_count(const LlamaConfig& c) {
  return c.layers * layer_matrices(c) + static_cast<int64_t>(c.vocab) * c.hidden;
}

double flops_per_token(const LlamaConfig& c, int tokens) {
  const double attention = 12.0 * c.layers * c.heads * c.head_dim * tokens;
  return 6.0 * static_cast<double>(matmul_parameter_count(c)) + attention;
}

}  // namespace tern::trainer
