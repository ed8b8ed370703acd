// Small models of every kind, with random parameters and text, for tests of the whole model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/philox.h"
#include "trainer/model/model.h"

namespace tern::trainer {

struct SmallModel {
  std::string name;
  LlamaConfig config;
  Shape shape;
};

inline LlamaConfig small_config(int heads, int kv_heads, int head_dim, bool tied) {
  return {.vocab = 19,
          .hidden = 20,
          .intermediate = 22,
          .layers = 2,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = head_dim,
          .tie_embeddings = tied,
          .max_position = 128};
}

/// Odd sizes (partial vectors, padding between parameters), grouped heads, tied heads, one token, several
/// blocks.
inline std::vector<SmallModel> small_models() {
  LlamaConfig aligned = small_config(2, 2, 16, false);  // q, k, v and gate, up touch: multiplied as one
  aligned.hidden = 32;
  aligned.intermediate = 48;
  LlamaConfig one_layer = small_config(3, 3, 4, true);
  one_layer.layers = 1;
  return {{"separate heads", small_config(2, 2, 10, false), {2, 7}},
          {"grouped heads, tied", small_config(4, 2, 6, true), {2, 5}},
          {"one key head", small_config(4, 1, 2, false), {1, 9}},
          {"touching weights", aligned, {2, 6}},
          {"one token, one layer, tied", one_layer, {3, 1}},
          {"more tokens than a block", small_config(2, 1, 4, false), {1, 70}}};
}

template <class T>
struct Inputs {
  std::vector<T> params;
  std::vector<int32_t> tokens, targets;
};

/// Parameters large enough that every part of the model bends the loss; the last target is ignored.
template <class T>
Inputs<T> random_inputs(const SmallModel& model, uint64_t seed) {
  const ParameterLayout layout(model.config);
  Inputs<T> in;
  in.params.assign(static_cast<size_t>(layout.n_elements()), T{0});
  Philox random(seed);
  for (const Parameter& p : layout.parameters()) {
    for (int64_t i = 0; i < p.size(); ++i) {
      const double value = (p.one_dimensional() ? 1.0 : 0.0) + 0.25 * static_cast<double>(random.normal());
      in.params[static_cast<size_t>(p.offset + i)] = static_cast<T>(value);
    }
  }
  for (int64_t i = 0; i < model.shape.rows(); ++i) {
    in.tokens.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(model.config.vocab))));
    in.targets.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(model.config.vocab))));
  }
  if (in.targets.size() > 1) in.targets.back() = -1;
  return in;
}

template <class T>
Model<T> make_model(const SmallModel& model, int threads) {
  return std::move(Model<T>::create(model.config, model.shape, threads)).value();
}

template <class T>
std::vector<T> gradients(Model<T>& model, const Inputs<T>& in, T loss_scale = 1) {
  std::vector<T> grads(in.params.size(), T{0});
  model.forward(in.params, in.tokens, in.targets);
  model.backward(in.params, grads, loss_scale, {});
  return grads;
}

}  // namespace tern::trainer
