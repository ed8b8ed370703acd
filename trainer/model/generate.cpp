#include "trainer/model/generate.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/philox.h"
#include "trainer/model/model.h"

namespace tern::trainer {

namespace {

Status validate_sampling(const LlamaConfig& config, std::span<const int32_t> prompt,
                         const SamplingOptions& o) {
  if (prompt.empty()) return error(Code::kInvalidArgument, "the prompt is empty; give at least one token");
  for (const int32_t token : prompt) {
    if (token < 0 || token >= config.vocab)
      return error(Code::kInvalidArgument, "prompt token {} is outside the vocabulary of {}", token,
                   config.vocab);
  }
  if (!std::isfinite(o.temperature) || o.temperature < 0)
    return error(Code::kInvalidArgument, "temperature {} must be finite and not negative", o.temperature);
  if (o.window < 1 || o.window > config.max_position)
    return error(Code::kInvalidArgument, "a window of {} tokens; allowed is 1 to max_position_embeddings {}",
                 o.window, config.max_position);
  return {};
}

int32_t draw(std::span<const float> logits, double temperature, Philox& random) {
  const auto top = std::max_element(logits.begin(), logits.end());
  if (temperature == 0) return static_cast<int32_t>(top - logits.begin());
  std::vector<double> cumulative;
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp((static_cast<double>(logit) - static_cast<double>(*top)) / temperature);
    cumulative.push_back(sum);
  }
  const double at = static_cast<double>(random.uniform()) * sum;
  const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), at);
  return static_cast<int32_t>(std::min<ptrdiff_t>(found - cumulative.begin(), std::ssize(logits) - 1));
}

}  // namespace

Result<std::vector<int32_t>> generate(const LlamaConfig& config, std::span<const float> params,
                                      std::span<const int32_t> prompt, const SamplingOptions& options) {
  TERN_TRY(validate_sampling(config, prompt, options));
  TERN_ASSIGN(auto model,
              Model<float>::create(config, {.batch = 1, .tokens = options.window}, options.threads));
  std::vector<int32_t> text(prompt.begin(), prompt.end());
  std::vector<float> logits(static_cast<size_t>(config.vocab));
  Philox random(options.seed);
  for (int i = 0; i < options.n_tokens; ++i) {
    // A text shorter than the window is padded behind its end, where causal attention does not look.
    const auto n = std::min<ptrdiff_t>(std::ssize(text), options.window);
    std::vector<int32_t> window(text.end() - n, text.end());
    window.resize(static_cast<size_t>(options.window), 0);
    model.logits(params, window, n - 1, logits);
    text.push_back(draw(logits, options.temperature, random));
  }
  return std::vector<int32_t>(text.begin() + std::ssize(prompt), text.end());
}

}  // namespace tern::trainer
