#include "trainer/model/parameters.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/philox.h"

namespace tern::trainer {

namespace {

/// The parameters in index order; their places come later.
class Lister {
 public:
  void add(std::string name, Parameter::Kind kind, int rows, int cols) {
    parameters.push_back({.name = std::move(name), .kind = kind, .layer = layer, .rows = rows, .cols = cols});
  }

  std::vector<Parameter> parameters;
  int layer = -1;
};

void add_layer(Lister& list, const LlamaConfig& c, int layer) {
  using enum Parameter::Kind;
  const std::string prefix = fmt::format("model.layers.{}.", layer);
  list.layer = layer;
  list.add(prefix + "input_layernorm.weight", kNorm, 1, c.hidden);
  list.add(prefix + "self_attn.q_proj.weight", kMatrix, c.query_width(), c.hidden);
  list.add(prefix + "self_attn.k_proj.weight", kMatrix, c.kv_width(), c.hidden);
  list.add(prefix + "self_attn.v_proj.weight", kMatrix, c.kv_width(), c.hidden);
  list.add(prefix + "self_attn.o_proj.weight", kResidualMatrix, c.hidden, c.query_width());
  list.add(prefix + "post_attention_layernorm.weight", kNorm, 1, c.hidden);
  list.add(prefix + "mlp.gate_proj.weight", kMatrix, c.intermediate, c.hidden);
  list.add(prefix + "mlp.up_proj.weight", kMatrix, c.intermediate, c.hidden);
  list.add(prefix + "mlp.down_proj.weight", kResidualMatrix, c.hidden, c.intermediate);
  list.layer = -1;
}

/// Places the parameters that are (or are not) one-dimensional from `begin` on; returns where they end.
int64_t place(std::vector<Parameter>& parameters, bool one_dimensional, int64_t begin) {
  for (Parameter& p : parameters) {
    if (p.one_dimensional() != one_dimensional) continue;
    p.offset = begin;
    begin += (p.size() + kParameterAlignment - 1) / kParameterAlignment * kParameterAlignment;
  }
  return begin;
}

double deviation(const LlamaConfig& config, Parameter::Kind kind) {
  if (kind != Parameter::Kind::kResidualMatrix) return config.initializer_range;
  return config.initializer_range / std::sqrt(2.0 * config.layers);
}

}  // namespace

ParameterLayout::ParameterLayout(const LlamaConfig& config) {
  using enum Parameter::Kind;
  Lister list;
  list.add("model.embed_tokens.weight", kEmbedding, config.vocab, config.hidden);
  for (int layer = 0; layer < config.layers; ++layer) add_layer(list, config, layer);
  list.add("model.norm.weight", kNorm, 1, config.hidden);
  if (!config.tie_embeddings) list.add("lm_head.weight", kMatrix, config.vocab, config.hidden);
  parameters_ = std::move(list.parameters);
  one_dimensional_begin_ = place(parameters_, false, 0);
  n_elements_ = place(parameters_, true, one_dimensional_begin_);
}

int ParameterLayout::find(std::string_view name) const {
  const auto it = std::find_if(parameters_.begin(), parameters_.end(),
                               [&](const Parameter& p) { return p.name == name; });
  return it == parameters_.end() ? -1 : static_cast<int>(it - parameters_.begin());
}

int ParameterLayout::at_element(int64_t element_idx) const {
  int found = 0;
  for (int idx = 0; idx < size(); ++idx) {
    const int64_t offset = (*this)[idx].offset;
    if (offset <= element_idx && offset >= (*this)[found].offset) found = idx;
  }
  return found;
}

template <class T>
// NOLINTNEXTLINE(readability-function-size): the operands of the formula
void initialise(const LlamaConfig& config, const ParameterLayout& layout, uint64_t seed, int64_t begin,
                std::span<T> out) {
  std::fill(out.begin(), out.end(), T{0});
  const int64_t end = begin + static_cast<int64_t>(out.size());
  for (int idx = 0; idx < layout.size(); ++idx) {
    const Parameter& p = layout[idx];
    const int64_t first = std::max(begin, p.offset);
    const int64_t last = std::min(end, p.offset + p.size());
    if (first >= last) continue;
    const auto part = out.subspan(static_cast<size_t>(first - begin), static_cast<size_t>(last - first));
    if (p.one_dimensional()) {
      std::fill(part.begin(), part.end(), T{1});
      continue;
    }
    // One stream per parameter, two numbers of it per element: any element can be entered directly.
    Philox random(seed, static_cast<uint64_t>(idx));
    random.seek(2 * static_cast<uint64_t>(first - p.offset));
    const double sigma = deviation(config, p.kind);
    for (T& value : part) value = static_cast<T>(sigma * static_cast<double>(random.normal()));
  }
}

template void initialise(const LlamaConfig&, const ParameterLayout&, uint64_t, int64_t, std::span<float>);
template void initialise(const LlamaConfig&, const ParameterLayout&, uint64_t, int64_t, std::span<double>);

}  // namespace tern::trainer
