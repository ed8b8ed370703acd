// Text out of a trained model: one token after the other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "trainer/model/model_config.h"

namespace tern::trainer {

struct SamplingOptions {
  int n_tokens = 200;        ///< tokens to add
  double temperature = 0.8;  ///< 0: always the likeliest token
  uint64_t seed = 1;
  int window = 256;  ///< the model sees at most this many of the last tokens
  int threads = 1;
};

/// The tokens that follow `prompt` (prompt not included), each drawn from softmax(logits / temperature).
///
/// params: the flat buffer of ParameterLayout(config).
/// Cost: every token recomputes the window: window * forward flops per token.
/// Errors: kInvalidArgument (empty prompt, a token outside the vocabulary, negative temperature, window
/// outside [1, max_position]), kOutOfMemory.
Result<std::vector<int32_t>> generate(const LlamaConfig& config, std::span<const float> params,
                                      std::span<const int32_t> prompt, const SamplingOptions& options);

}  // namespace tern::trainer
