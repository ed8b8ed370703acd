#include "trainer/model/rope_table.h"

#include <cmath>
#include <numbers>

namespace tern::trainer {

namespace {

/// Llama 3.1: wavelengths that fit the original context many times stay, those that hardly fit are stretched.
double stretched(const RopeScaling& s, double frequency) {
  switch (s.kind) {
    case RopeScaling::Kind::kNone:
      return frequency;
    case RopeScaling::Kind::kLinear:
      return frequency / s.factor;
    case RopeScaling::Kind::kLlama3:
      break;
  }
  const double turns = s.original_max_position_embeddings * frequency / (2.0 * std::numbers::pi);
  if (turns > s.high_freq_factor) return frequency;
  if (turns < s.low_freq_factor) return frequency / s.factor;
  const double smooth = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return (1.0 - smooth) * frequency / s.factor + smooth * frequency;
}

}  // namespace

std::vector<double> rope_frequencies(const LlamaConfig& config) {
  std::vector<double> frequencies(static_cast<size_t>(config.head_dim / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / config.head_dim;
    frequencies[i] = stretched(config.rope_scaling, std::pow(config.rope_theta, exponent));
  }
  return frequencies;
}

template <class T>
RopeTable<T>::RopeTable(const LlamaConfig& config, int tokens) {
  const std::vector<double> frequencies = rope_frequencies(config);
  for (int position = 0; position < tokens; ++position) {
    for (const double frequency : frequencies) {
      cosines.push_back(static_cast<T>(std::cos(position * frequency)));
      sines.push_back(static_cast<T>(std::sin(position * frequency)));
    }
  }
}

template struct RopeTable<float>;
template struct RopeTable<double>;

}  // namespace tern::trainer
