// The loss of the whole model by its definition: fp64 loops over one row at a time, nothing shared with the
// code under test but the parameter layout.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/model/model.h"

namespace tern::trainer {

class ReferenceModel {
 public:
  using Row = std::vector<double>;

  ReferenceModel(const LlamaConfig& config, std::span<const double> params)
      : c_(config), layout_(config), params_(params) {}

  /// Sum of losses over the sequences of `shape`.
  double loss(Shape shape, std::span<const int32_t> tokens, std::span<const int32_t> targets) const {
    double sum = 0;
    for (int b = 0; b < shape.batch; ++b) {
      const size_t begin = static_cast<size_t>(b) * static_cast<size_t>(shape.tokens);
      const std::vector<Row> logits = sequence(tokens.subspan(begin, static_cast<size_t>(shape.tokens)));
      for (size_t t = 0; t < logits.size(); ++t) {
        if (targets[begin + t] < 0) continue;
        double total = 0;
        for (const double x : logits[t]) total += std::exp(x);
        sum += std::log(total) - logits[t][static_cast<size_t>(targets[begin + t])];
      }
    }
    return sum;
  }

  /// Logits of every position of one sequence.
  std::vector<Row> sequence(std::span<const int32_t> tokens) const {
    std::vector<Row> x;
    for (const int32_t token : tokens) {
      const auto table = weight("model.embed_tokens.weight");
      const auto row = table.subspan(static_cast<size_t>(token) * hidden(), hidden());
      x.emplace_back(row.begin(), row.end());
    }
    for (int layer = 0; layer < c_.layers; ++layer) {
      attention(layer, x);
      for (Row& row : x) mlp(layer, row);
    }
    const char* head = c_.tie_embeddings ? "model.embed_tokens.weight" : "lm_head.weight";
    for (Row& row : x) row = linear(head, norm("model.norm.weight", row));
    return x;
  }

 private:
  size_t hidden() const { return static_cast<size_t>(c_.hidden); }
  std::span<const double> weight(const std::string& name) const {
    const Parameter& p = layout_[layout_.find(name)];
    return params_.subspan(static_cast<size_t>(p.offset), static_cast<size_t>(p.size()));
  }
  static std::string in_layer(int layer, const std::string& name) {
    return "model.layers." + std::to_string(layer) + "." + name + ".weight";
  }

  Row linear(const std::string& name, const Row& x) const {
    const auto w = weight(name);
    Row y(w.size() / x.size());
    for (size_t o = 0; o < y.size(); ++o)
      for (size_t i = 0; i < x.size(); ++i) y[o] += w[o * x.size() + i] * x[i];
    return y;
  }

  Row norm(const std::string& name, Row x) const {
    double squares = 0;
    for (const double v : x) squares += v * v;
    const double rms = std::sqrt(squares / static_cast<double>(x.size()) + c_.rms_norm_eps);
    const auto w = weight(name);
    for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] / rms * w[i];
    return x;
  }

  /// HF's rotate_half: lane i pairs with lane i + head_dim / 2.
  void rotate(Row& x, size_t position) const {
    const size_t dim = static_cast<size_t>(c_.head_dim), half = dim / 2;
    for (size_t head = 0; head < x.size() / dim; ++head) {
      for (size_t i = 0; i < half; ++i) {
        const double frequency =
            std::pow(c_.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(dim));
        const double angle = static_cast<double>(position) * frequency;
        double& low = x[head * dim + i];
        double& high = x[head * dim + half + i];
        const double a = low, b = high;
        low = a * std::cos(angle) - b * std::sin(angle);
        high = b * std::cos(angle) + a * std::sin(angle);
      }
    }
  }

  void attention(int layer, std::vector<Row>& x) const {
    std::vector<Row> q, k, v;
    for (size_t t = 0; t < x.size(); ++t) {
      const Row normed = norm(in_layer(layer, "input_layernorm"), x[t]);
      q.push_back(linear(in_layer(layer, "self_attn.q_proj"), normed));
      k.push_back(linear(in_layer(layer, "self_attn.k_proj"), normed));
      v.push_back(linear(in_layer(layer, "self_attn.v_proj"), normed));
      rotate(q.back(), t);
      rotate(k.back(), t);
    }
    const size_t dim = static_cast<size_t>(c_.head_dim);
    for (size_t t = 0; t < x.size(); ++t) {
      Row out(q[t].size());
      for (size_t head = 0; head < static_cast<size_t>(c_.heads); ++head) {
        const size_t kv = head / static_cast<size_t>(c_.heads / c_.kv_heads);
        Row p(t + 1);
        double total = 0;
        for (size_t s = 0; s <= t; ++s) {
          double score = 0;
          for (size_t i = 0; i < dim; ++i) score += q[t][head * dim + i] * k[s][kv * dim + i];
          total += p[s] = std::exp(score / std::sqrt(static_cast<double>(dim)));
        }
        for (size_t s = 0; s <= t; ++s)
          for (size_t i = 0; i < dim; ++i) out[head * dim + i] += p[s] / total * v[s][kv * dim + i];
      }
      add(x[t], linear(in_layer(layer, "self_attn.o_proj"), out));
    }
  }

  void mlp(int layer, Row& x) const {
    const Row normed = norm(in_layer(layer, "post_attention_layernorm"), x);
    const Row gate = linear(in_layer(layer, "mlp.gate_proj"), normed);
    Row inner = linear(in_layer(layer, "mlp.up_proj"), normed);
    for (size_t i = 0; i < inner.size(); ++i) inner[i] *= gate[i] / (1.0 + std::exp(-gate[i]));
    add(x, linear(in_layer(layer, "mlp.down_proj"), inner));
  }

  static void add(Row& x, const Row& y) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  LlamaConfig c_;
  ParameterLayout layout_;
  std::span<const double> params_;
};

}  // namespace tern::trainer
