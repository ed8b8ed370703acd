// The backward pass, in the forward pass's pieces and order reversed. Gradients of activations are local to a
// row and run in chunks; gradients of weights need all rows, so the team shares out their output rows after a
// meeting.
#include <algorithm>
#include <utility>

#include "trainer/kernels/embedding.h"
#include "trainer/kernels/rms_norm.h"
#include "trainer/kernels/swiglu.h"
#include "trainer/model/state.h"

namespace tern::trainer {

namespace {

/// One norm within the backward pass: which rows of what.
template <class T>
struct NormStep {
  int64_t weight;     // offset in the flat buffer
  const T* x;         // (N, C)
  const T* rstd;      // (N)
  const T* residual;  // (N, C) or null
  T* d_x;             // (N, C)
};

/// scratch.normed <- the norm's output again; d_x <- residual + gradient of scratch.d_normed through the
/// norm.
template <class T>
void norm_backward(ModelState<T>& s, const T* params, const NormStep<T>& step, std::pair<Range, int> at) {
  const auto [r, member] = at;
  const int64_t width = s.config.hidden;
  const T* x = at_row(step.x, r.begin, width);
  rms_norm_again(RmsNormAgain<T>{.rows = r.size(),
                                 .width = width,
                                 .x = x,
                                 .rstd = step.rstd + r.begin,
                                 .weight = params + step.weight,
                                 .y = at_row(s.scratch.normed, r.begin, width)});
  rms_norm_backward(RmsNormBackward<T>{
      .rows = r.size(),
      .width = width,
      .x = x,
      .rstd = step.rstd + r.begin,
      .weight = params + step.weight,
      .dy = at_row(s.scratch.d_normed, r.begin, width),
      .residual = step.residual == nullptr ? nullptr : at_row(step.residual, r.begin, width),
      .dx = at_row(step.d_x, r.begin, width),
      .dweight = at_row(s.scratch.d_norm_weight, member, width)});
}

/// Moves the members' partial sums, in their order, into the gradient of the norm's weight.
template <class T>
void collect_norm_gradient(ModelState<T>& s, T* d_weight) {
  for (int member = 0; member < s.team.size(); ++member) {
    T* partial = at_row(s.scratch.d_norm_weight, member, static_cast<int64_t>(s.config.hidden));
    for (int64_t i = 0; i < s.config.hidden; ++i) d_weight[i] += partial[i];
    std::fill_n(partial, s.config.hidden, T{0});
  }
}

template <class T>
void weight_gradient(ModelState<T>& s, const Projection& projection, const WeightGradient<T>& args,
                     T* grads) {
  Lap lap(&s.times);
  add_weight_gradient(s.team, projection, args, grads);
  lap.add(&PassTimes::gemm);
}

template <class T>
void head_backward(ModelState<T>& s, const T* params, const GradientSink<T>& sink) {
  const int64_t width = s.config.hidden;
  const SharedScratch<T>& scratch = s.scratch;
  const NormStep<T> norm{s.final_norm, scratch.x_final, scratch.final_rstd, nullptr, scratch.d_x};
  s.for_rows([&](Range r, int member, Lap& lap) {
    project_back(s.head, params,
                 Flow<T>{.from = at_row(scratch.logits, r.begin, s.head.outputs),
                         .to = at_row(scratch.d_normed, r.begin, width),
                         .rows = r.size(),
                         .alpha = sink.loss_scale});
    lap.add(&PassTimes::gemm);
    norm_backward(s, params, norm, {r, member});
    lap.add(&PassTimes::norm);
  });
  weight_gradient(s, s.head, {scratch.logits, scratch.normed, s.rows(), sink.loss_scale}, sink.grads);
  collect_norm_gradient(s, sink.grads + s.final_norm);
  for (int idx = s.layout.size() - 1; idx >= s.weights.back().first_param + kParametersPerLayer; --idx)
    sink.ready(idx);
}

/// From the gradient of the layer's output (d_x) to those of x_mid (d_mid) and of the attention's output.
template <class T>
void output_to_attention(ModelState<T>& s, const T* params, int layer) {
  const LayerWeights& w = s.weights[static_cast<size_t>(layer)];
  const LayerActivations<T>& a = s.layers[static_cast<size_t>(layer)];
  const SharedScratch<T>& scratch = s.scratch;
  const int64_t inner = s.config.intermediate;
  const NormStep<T> norm{w.post_attention_norm, a.x_mid, a.post_rstd, scratch.d_x, scratch.d_mid};
  s.for_rows([&](Range r, int member, Lap& lap) {
    const auto back = [&](const Projection& p, T* from, T* to) {
      project_back(p, params,
                   Flow<T>{.from = at_row(from, r.begin, p.outputs),
                           .to = at_row(to, r.begin, p.inputs),
                           .rows = r.size()});
      lap.add(&PassTimes::gemm);
    };
    back(w.down, scratch.d_x, scratch.activated);
    swiglu_backward(SwigluBackward<T>{.rows = r.size(),
                                      .width = inner,
                                      .gate_up = at_row(a.gate_up, r.begin, 2 * inner),
                                      .d_out = at_row(scratch.activated, r.begin, inner)});
    lap.add(&PassTimes::activation);
    back(w.gate_up, a.gate_up, scratch.d_normed);
    norm_backward(s, params, norm, {r, member});
    lap.add(&PassTimes::norm);
    back(w.o, scratch.d_mid, scratch.d_attention);
  });
}

template <class T>
void mlp_weight_gradients(ModelState<T>& s, int layer, const GradientSink<T>& sink) {
  const LayerWeights& w = s.weights[static_cast<size_t>(layer)];
  const LayerActivations<T>& a = s.layers[static_cast<size_t>(layer)];
  const SharedScratch<T>& scratch = s.scratch;
  weight_gradient(s, w.down, {scratch.d_x, scratch.activated, s.rows()}, sink.grads);
  sink.ready(w.first_param + 8);
  weight_gradient(s, w.gate_up, {a.gate_up, scratch.normed, s.rows()}, sink.grads);
  sink.ready(w.first_param + 7);
  sink.ready(w.first_param + 6);
  collect_norm_gradient(s, sink.grads + w.post_attention_norm);
  sink.ready(w.first_param + 5);
  weight_gradient(s, w.o, {scratch.d_mid, a.attention, s.rows()}, sink.grads);
  sink.ready(w.first_param + 4);
}

template <class T>
void attend_backward(ModelState<T>& s, int layer) {
  const LayerActivations<T>& a = s.layers[static_cast<size_t>(layer)];
  const AttentionShape shape = s.attention_shape();
  s.for_key_heads([&](int64_t sequence, int64_t kv_head, int member) {
    const int64_t row = sequence * shape.tokens;
    attention_backward(
        AttentionBackward<T>{.shape = shape,
                             .qkv = at_row(a.qkv, row, shape.qkv_width()),
                             .out = at_row(a.attention, row, shape.out_width()),
                             .lse = at_row(a.lse, row, shape.heads),
                             .d_out = at_row(s.scratch.d_attention, row, shape.out_width()),
                             .d_qkv = at_row(s.scratch.d_qkv, row, shape.qkv_width()),
                             .scratch = s.scratch.attention + member * attention_scratch(shape)},
        kv_head);
  });
}

/// From the gradient of q, k and v to that of the layer's input (d_x).
template <class T>
void qkv_to_input(ModelState<T>& s, const T* params, int layer, const GradientSink<T>& sink) {
  const LayerWeights& w = s.weights[static_cast<size_t>(layer)];
  const LayerActivations<T>& a = s.layers[static_cast<size_t>(layer)];
  const SharedScratch<T>& scratch = s.scratch;
  const NormStep<T> norm{w.input_norm, a.x, a.input_rstd, scratch.d_mid, scratch.d_x};
  s.for_rows([&](Range r, int member, Lap& lap) {
    T* d_qkv = at_row(scratch.d_qkv, r.begin, w.qkv.outputs);
    rotate(s.rotation(r, d_qkv, -1));
    lap.add(&PassTimes::attention);
    project_back(
        w.qkv, params,
        Flow<T>{.from = d_qkv, .to = at_row(scratch.d_normed, r.begin, w.qkv.inputs), .rows = r.size()});
    lap.add(&PassTimes::gemm);
    norm_backward(s, params, norm, {r, member});
    lap.add(&PassTimes::norm);
  });
  weight_gradient(s, w.qkv, {scratch.d_qkv, scratch.normed, s.rows()}, sink.grads);
  for (int i = 3; i >= 1; --i) sink.ready(w.first_param + i);
  collect_norm_gradient(s, sink.grads + w.input_norm);
  sink.ready(w.first_param);
}

}  // namespace

template <class T>
void backward_from_logits(ModelState<T>& s, const T* params, const GradientSink<T>& sink) {
  head_backward(s, params, sink);
  for (int layer = s.config.layers - 1; layer >= 0; --layer) {
    output_to_attention(s, params, layer);
    mlp_weight_gradients(s, layer, sink);
    attend_backward(s, layer);
    qkv_to_input(s, params, layer, sink);
  }
  Lap lap(&s.times);
  embedding_backward(s.team, EmbeddingBackward<T>{.tokens = s.tokens,
                                                  .width = s.config.hidden,
                                                  .dx = s.scratch.d_x,
                                                  .d_table = sink.grads + s.layout[0].offset});
  lap.add(&PassTimes::embedding);
  sink.ready(0);
}

template void backward_from_logits(ModelState<float>&, const float*, const GradientSink<float>&);
template void backward_from_logits(ModelState<double>&, const double*, const GradientSink<double>&);

}  // namespace tern::trainer
