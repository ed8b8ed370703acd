// The forward pass. Between two attentions everything is local to a row, so each thread takes its rows
// through a whole block (o_proj .. down_proj) in chunks that stay in cache, and meets the others only around
// attention.
#include <algorithm>

#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/embedding.h"
#include "trainer/kernels/rms_norm.h"
#include "trainer/kernels/swiglu.h"
#include "trainer/model/state.h"

namespace tern::trainer {

namespace {

template <class T>
void input_to_qkv(ModelState<T>& s, const T* params, int layer) {
  const LayerWeights& w = s.weights[static_cast<size_t>(layer)];
  const LayerActivations<T>& a = s.layers[static_cast<size_t>(layer)];
  const int64_t width = s.config.hidden;
  s.for_rows([&](Range r, int, Lap& lap) {
    T* normed = at_row(s.scratch.normed, r.begin, width);
    rms_norm_forward(RmsNormForward<T>{.rows = r.size(),
                                       .width = width,
                                       .eps = static_cast<T>(s.config.rms_norm_eps),
                                       .x = at_row(a.x, r.begin, width),
                                       .weight = params + w.input_norm,
                                       .rstd = a.input_rstd + r.begin,
                                       .y = normed});
    lap.add(&PassTimes::norm);
    T* qkv = at_row(a.qkv, r.begin, w.qkv.outputs);
    project(w.qkv, params, Flow<T>{.from = normed, .to = qkv, .rows = r.size()});
    lap.add(&PassTimes::gemm);
    rotate(s.rotation(r, qkv, 1));
    lap.add(&PassTimes::attention);
  });
}

template <class T>
void attend(ModelState<T>& s, int layer) {
  const LayerActivations<T>& a = s.layers[static_cast<size_t>(layer)];
  const AttentionShape shape = s.attention_shape();
  s.for_key_heads([&](int64_t sequence, int64_t kv_head, int member) {
    const int64_t row = sequence * shape.tokens;
    attention_forward(AttentionForward<T>{.shape = shape,
                                          .qkv = at_row(a.qkv, row, shape.qkv_width()),
                                          .out = at_row(a.attention, row, shape.out_width()),
                                          .lse = at_row(a.lse, row, shape.heads),
                                          .scratch = s.scratch.attention + member * attention_scratch(shape)},
                      kv_head);
  });
}

/// x_next = x_mid + down(swiglu(gate_up(norm(x_mid)))), where x_mid = x + o(attention).
template <class T>
void attention_to_output(ModelState<T>& s, const T* params, int layer, T* x_next) {
  const LayerWeights& w = s.weights[static_cast<size_t>(layer)];
  const LayerActivations<T>& a = s.layers[static_cast<size_t>(layer)];
  const int64_t width = s.config.hidden;
  const int64_t inner = s.config.intermediate;
  s.for_rows([&](Range r, int, Lap& lap) {
    T* x_mid = at_row(a.x_mid, r.begin, width);
    std::copy_n(at_row(a.x, r.begin, width), r.size() * width, x_mid);
    lap.add(&PassTimes::norm);
    const T* attention = at_row(a.attention, r.begin, w.o.inputs);
    project(w.o, params, Flow<T>{.from = attention, .to = x_mid, .rows = r.size(), .beta = 1});
    lap.add(&PassTimes::gemm);
    T* normed = at_row(s.scratch.normed, r.begin, width);
    rms_norm_forward(RmsNormForward<T>{.rows = r.size(),
                                       .width = width,
                                       .eps = static_cast<T>(s.config.rms_norm_eps),
                                       .x = x_mid,
                                       .weight = params + w.post_attention_norm,
                                       .rstd = a.post_rstd + r.begin,
                                       .y = normed});
    lap.add(&PassTimes::norm);
    T* gate_up = at_row(a.gate_up, r.begin, 2 * inner);
    project(w.gate_up, params, Flow<T>{.from = normed, .to = gate_up, .rows = r.size()});
    lap.add(&PassTimes::gemm);
    T* activated = at_row(s.scratch.activated, r.begin, inner);
    swiglu_forward(SwigluForward<T>{.rows = r.size(), .width = inner, .gate_up = gate_up, .out = activated});
    lap.add(&PassTimes::activation);
    T* out = at_row(x_next, r.begin, width);
    std::copy_n(x_mid, r.size() * width, out);
    lap.add(&PassTimes::norm);
    project(w.down, params, Flow<T>{.from = activated, .to = out, .rows = r.size(), .beta = 1});
    lap.add(&PassTimes::gemm);
  });
}

template <class T>
void final_norm_and_head(ModelState<T>& s, const T* params) {
  const int64_t width = s.config.hidden;
  s.for_rows([&](Range r, int, Lap& lap) {
    T* normed = at_row(s.scratch.normed, r.begin, width);
    rms_norm_forward(RmsNormForward<T>{.rows = r.size(),
                                       .width = width,
                                       .eps = static_cast<T>(s.config.rms_norm_eps),
                                       .x = at_row(s.scratch.x_final, r.begin, width),
                                       .weight = params + s.final_norm,
                                       .rstd = s.scratch.final_rstd + r.begin,
                                       .y = normed});
    lap.add(&PassTimes::norm);
    T* logits = at_row(s.scratch.logits, r.begin, s.head.outputs);
    project(s.head, params, Flow<T>{.from = normed, .to = logits, .rows = r.size()});
    lap.add(&PassTimes::gemm);
  });
}

}  // namespace

template <class T>
void forward_to_logits(ModelState<T>& s, const T* params, std::span<const int32_t> tokens) {
  const LlamaConfig& config = s.config;
  TERN_CHECK(static_cast<int64_t>(tokens.size()) == s.rows());
  TERN_CHECK(std::all_of(tokens.begin(), tokens.end(),
                         [&](int32_t token) { return token >= 0 && token < config.vocab; }));
  s.tokens.assign(tokens.begin(), tokens.end());
  Lap lap(&s.times);
  embed(params + s.layout[0].offset, tokens, static_cast<int64_t>(config.hidden), s.layers.front().x);
  lap.add(&PassTimes::embedding);
  for (int layer = 0; layer < config.layers; ++layer) {
    const bool last = layer + 1 == config.layers;
    input_to_qkv(s, params, layer);
    attend(s, layer);
    attention_to_output(s, params, layer,
                        last ? s.scratch.x_final : s.layers[static_cast<size_t>(layer) + 1].x);
  }
  final_norm_and_head(s, params);
}

template <class T>
double sum_losses(ModelState<T>& s, std::span<const int32_t> targets) {
  s.for_rows([&](Range r, int, Lap& lap) {
    cross_entropy(CrossEntropy<T>{.rows = r.size(),
                                  .vocab = s.config.vocab,
                                  .targets = targets.data() + r.begin,
                                  .logits = at_row(s.scratch.logits, r.begin, s.head.outputs),
                                  .losses = s.row_losses.data() + r.begin});
    lap.add(&PassTimes::loss);
  });
  double sum = 0;  // in row order, whatever the team
  for (const double loss : s.row_losses) sum += loss;
  return sum;
}

template void forward_to_logits(ModelState<float>&, const float*, std::span<const int32_t>);
template void forward_to_logits(ModelState<double>&, const double*, std::span<const int32_t>);
template double sum_losses(ModelState<float>&, std::span<const int32_t>);
template double sum_losses(ModelState<double>&, std::span<const int32_t>);

}  // namespace tern::trainer
