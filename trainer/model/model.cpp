#include "trainer/model/model.h"

#include <algorithm>
#include <utility>

#include "trainer/model/state.h"

namespace tern::trainer {

namespace {

/// Cuts one allocation into arrays on cache lines. Without memory it only counts.
template <class T>
class Carver {
 public:
  explicit Carver(T* memory) : memory_(memory) {}
  T* take(int64_t n) {
    T* taken = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += (n + kLine - 1) / kLine * kLine;
    return taken;
  }
  /// A matrix with its rows apart as row_stride() says.
  Rows<T> take_rows(int64_t rows, int64_t width) {
    const int64_t stride = row_stride<T>(width);
    return {take(rows * stride), rows, width, stride};
  }
  int64_t used() const { return used_; }

 private:
  static constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  T* memory_;
  int64_t used_ = 0;
};

template <class T>
LayerActivations<T> carve_layer(Carver<T>& carver, const LlamaConfig& c, Shape shape) {
  const int64_t n = shape.rows();
  LayerActivations<T> a;
  a.x = carver.take_rows(n, c.hidden);
  a.input_rstd = carver.take(n);
  a.qkv = carver.take_rows(n, c.query_width() + 2 * c.kv_width());
  a.lse = carver.take(n * c.heads);
  a.attention = carver.take_rows(n, c.query_width());
  a.x_mid = carver.take_rows(n, c.hidden);
  a.post_rstd = carver.take(n);
  a.gate_up = carver.take_rows(n, 2 * c.intermediate);
  return a;
}

template <class T>
SharedScratch<T> carve_scratch(Carver<T>& carver, const LlamaConfig& c, Shape shape, int threads) {
  const int64_t n = shape.rows();
  const AttentionShape attention{shape.tokens, c.heads, c.kv_heads, c.head_dim};
  SharedScratch<T> s;
  s.x_final = carver.take_rows(n, c.hidden);
  s.final_rstd = carver.take(n);
  s.normed = carver.take_rows(n, c.hidden);
  s.activated = carver.take_rows(n, c.intermediate);
  s.d_x = carver.take_rows(n, c.hidden);
  s.d_mid = carver.take_rows(n, c.hidden);
  s.d_normed = carver.take_rows(n, c.hidden);
  s.d_attention = carver.take_rows(n, c.query_width());
  s.d_qkv = carver.take_rows(n, attention.qkv_width());
  s.logits = carver.take_rows(n, c.vocab);
  s.attention = carver.take(threads * attention_scratch<T>(attention));
  s.d_norm_weight = carver.take(static_cast<int64_t>(threads) * c.hidden);
  return s;
}

Status validate_shape(const LlamaConfig& config, Shape shape, int threads) {
  if (shape.batch < 1 || shape.tokens < 1)
    return error(Code::kInvalidArgument,
                 "a micro-batch of {} sequences of {} tokens; both must be at least 1", shape.batch,
                 shape.tokens);
  if (shape.tokens > config.max_position)
    return error(Code::kInvalidArgument, "sequences of {} tokens are longer than max_position_embeddings {}",
                 shape.tokens, config.max_position);
  if (threads < 1) return error(Code::kInvalidArgument, "{} threads; at least 1 is needed", threads);
  return {};
}

}  // namespace

LayerWeights::LayerWeights(const ParameterLayout& layout, int layer)
    : first_param(layout.find(fmt::format("model.layers.{}.input_layernorm.weight", layer))),
      input_norm(layout[first_param].offset),
      post_attention_norm(layout[first_param + 5].offset),
      qkv(layout, first_param + 1, 3),
      o(layout, first_param + 4, 1),
      gate_up(layout, first_param + 6, 2),
      down(layout, first_param + 8, 1) {}

template <class T>
ModelState<T>::ModelState(const LlamaConfig& config_in, Shape shape_in, int threads, Buffer<T> memory_in)
    : config(config_in),
      shape(shape_in),
      layout(config),
      final_norm(layout[layout.find("model.norm.weight")].offset),
      head(layout, config.tie_embeddings ? 0 : layout.size() - 1, 1),
      rope(config, shape.tokens),
      team(threads),
      memory(std::move(memory_in)),
      row_losses(static_cast<size_t>(shape.rows())) {
  Carver<T> carver(memory.data());
  for (int layer = 0; layer < config.layers; ++layer) {
    weights.emplace_back(layout, layer);
    layers.push_back(carve_layer(carver, config, shape));
  }
  scratch = carve_scratch(carver, config, shape, threads);
}

template <class T>
int64_t Model<T>::activation_bytes(const LlamaConfig& config, Shape shape, int threads) {
  Carver<T> layer(nullptr);
  static_cast<void>(carve_layer(layer, config, shape));
  Carver<T> scratch(nullptr);
  static_cast<void>(carve_scratch(scratch, config, shape, threads));
  return (config.layers * layer.used() + scratch.used()) * static_cast<int64_t>(sizeof(T));
}

template <class T>
Result<Model<T>> Model<T>::create(const LlamaConfig& config, Shape shape, int threads) {
  TERN_TRY(validate(config));
  TERN_TRY(validate_shape(config, shape, threads));
  const int64_t n = activation_bytes(config, shape, threads) / static_cast<int64_t>(sizeof(T));
  TERN_ASSIGN(Buffer<T> memory, Buffer<T>::create(n));
  return Model(std::make_unique<ModelState<T>>(config, shape, threads, std::move(memory)));
}

template <class T>
Model<T>::Model(std::unique_ptr<ModelState<T>> state) : state_(std::move(state)) {}
template <class T>
Model<T>::Model(Model&&) noexcept = default;
template <class T>
Model<T>& Model<T>::operator=(Model&&) noexcept = default;
template <class T>
Model<T>::~Model() = default;

template <class T>
const LlamaConfig& Model<T>::config() const {
  return state_->config;
}
template <class T>
const ParameterLayout& Model<T>::layout() const {
  return state_->layout;
}
template <class T>
Shape Model<T>::shape() const {
  return state_->shape;
}
template <class T>
Team& Model<T>::team() {
  return state_->team;
}
template <class T>
const PassTimes& Model<T>::times() const {
  return state_->times;
}
template <class T>
void Model<T>::reset_times() {
  state_->times = {};
}

template <class T>
double Model<T>::forward(std::span<const T> params, std::span<const int32_t> tokens,
                         std::span<const int32_t> targets) {
  const ModelState<T>& s = *state_;
  TERN_CHECK(static_cast<int64_t>(params.size()) == s.layout.n_elements());
  TERN_CHECK(static_cast<int64_t>(targets.size()) == s.rows());
  TERN_CHECK(std::all_of(targets.begin(), targets.end(), [&](int32_t t) { return t < s.config.vocab; }));
  forward_to_logits(*state_, params.data(), tokens);
  return sum_losses(*state_, targets);
}

template <class T>
void Model<T>::backward(std::span<const T> params, std::span<T> grads, T loss_scale,
                        const std::function<void(int)>& on_grad_ready) {
  const ModelState<T>& s = *state_;
  TERN_CHECK(static_cast<int64_t>(params.size()) == s.layout.n_elements());
  TERN_CHECK(params.size() == grads.size());
  TERN_CHECK(!s.tokens.empty());  // forward() comes first
  backward_from_logits(
      *state_, params.data(),
      GradientSink<T>{.grads = grads.data(), .loss_scale = loss_scale, .on_ready = on_grad_ready});
}

template <class T>
void Model<T>::logits(std::span<const T> params, std::span<const int32_t> tokens, int64_t row,
                      std::span<T> out) {
  const ModelState<T>& s = *state_;
  TERN_CHECK(static_cast<int64_t>(params.size()) == s.layout.n_elements());
  TERN_CHECK(row >= 0 && row < s.rows() && out.size() == static_cast<size_t>(s.config.vocab));
  forward_to_logits(*state_, params.data(), tokens);
  std::copy_n(s.scratch.logits.row(row), out.size(), out.data());
}

template struct ModelState<float>;
template struct ModelState<double>;
template class Model<float>;
template class Model<double>;

}  // namespace tern::trainer
