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

/// One norm within the backward pass.
template <class T>
struct NormStep {
  int64_t weight;    // offset in the flat buffer
  Rows<T> x;         // (N, C)
  const T* rstd;     // (N)
  Rows<T> residual;  // (N, C), or nothing
  Rows<T> d_x;       // (N, C)
};

/// scratch.normed <- the norm's output again; d_x <- residual + gradient of scratch.d_normed through the
/// norm.
template <class T>
void norm_backward(ModelState<T>& s, const T* params, const NormStep<T>& step, std::pair<Range, int> at) {
  const auto [r, member] = at;
  const T* weight = params + step.weight;
  rms_norm_again(RmsNormAgain<T>{
      .x = step.x.part(r), .rstd = step.rstd + r.begin, .weight = weight, .y = s.scratch.normed.part(r)});
  rms_norm_backward(
      RmsNormBackward<T>{.x = step.x.part(r),
                         .rstd = step.rstd + r.begin,
                         .weight = weight,
                         .dy = s.scratch.d_normed.part(r),
                         .residual = step.residual.data == nullptr ? Rows<T>{} : step.residual.part(r),
                         .dx = step.d_x.part(r),
                         .dweight = s.norm_partial(member)});
}

/// Moves the members' partial sums, in their order, into the gradient of the norm's weight.
template <class T>
void collect_norm_gradient(ModelState<T>& s, T* d_weight) {
  for (int member = 0; member < s.team.size(); ++member) {
    T* partial = s.norm_partial(member);
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
  const SharedScratch<T>& scratch = s.scratch;
  const NormStep<T> norm{s.final_norm, scratch.x_final, scratch.final_rstd, {}, scratch.d_x};
  s.for_rows([&](Range r, int member, Lap& lap) {
    project_back(
        s.head, params,
        Flow<T>{.from = scratch.logits.part(r), .to = scratch.d_normed.part(r), .alpha = sink.loss_scale});
    lap.add(&PassTimes::gemm);
    norm_backward(s, params, norm, {r, member});
    lap.add(&PassTimes::norm);
  });
  weight_gradient(s, s.head, {scratch.logits, scratch.normed, sink.loss_scale}, sink.grads);
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
  const NormStep<T> norm{w.post_attention_norm, a.x_mid, a.post_rstd, scratch.d_x, scratch.d_mid};
  s.for_rows([&](Range r, int member, Lap& lap) {
    const auto back = [&](const Projection& projection, const Rows<T>& from, const Rows<T>& to) {
      project_back(projection, params, Flow<T>{.from = from.part(r), .to = to.part(r)});
      lap.add(&PassTimes::gemm);
    };
    back(w.down, scratch.d_x, scratch.activated);
    swiglu_backward(SwigluBackward<T>{.gate_up = a.gate_up.part(r), .d_out = scratch.activated.part(r)});
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
  weight_gradient(s, w.down, {scratch.d_x, scratch.activated}, sink.grads);
  sink.ready(w.first_param + 8);
  weight_gradient(s, w.gate_up, {a.gate_up, scratch.normed}, sink.grads);
  sink.ready(w.first_param + 7);
  sink.ready(w.first_param + 6);
  collect_norm_gradient(s, sink.grads + w.post_attention_norm);
  sink.ready(w.first_param + 5);
  weight_gradient(s, w.o, {scratch.d_mid, a.attention}, sink.grads);
  sink.ready(w.first_param + 4);
}

template <class T>
void attend_backward(ModelState<T>& s, int layer) {
  const LayerActivations<T>& a = s.layers[static_cast<size_t>(layer)];
  s.for_key_heads([&](Range sequence, int64_t kv_head, int member) {
    attention_backward(AttentionBackward<T>{.shape = s.attention_shape(),
                                            .qkv = a.qkv.part(sequence),
                                            .out = a.attention.part(sequence),
                                            .lse = a.lse + sequence.begin * s.config.heads,
                                            .d_out = s.scratch.d_attention.part(sequence),
                                            .d_qkv = s.scratch.d_qkv.part(sequence),
                                            .scratch = s.attention_scratch_of(member)},
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
    rotate(s.rotation(scratch.d_qkv, r, -1));
    lap.add(&PassTimes::attention);
    project_back(w.qkv, params, Flow<T>{.from = scratch.d_qkv.part(r), .to = scratch.d_normed.part(r)});
    lap.add(&PassTimes::gemm);
    norm_backward(s, params, norm, {r, member});
    lap.add(&PassTimes::norm);
  });
  weight_gradient(s, w.qkv, {scratch.d_qkv, scratch.normed}, sink.grads);
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
  embedding_backward(
      s.team, EmbeddingBackward<T>{
                  .tokens = s.tokens, .dx = s.scratch.d_x, .d_table = sink.grads + s.layout[0].offset});
  lap.add(&PassTimes::embedding);
  sink.ready(0);
}

template void backward_from_logits(ModelState<float>&, const float*, const GradientSink<float>&);
template void backward_from_logits(ModelState<double>&, const double*, const GradientSink<double>&);

}  // namespace tern::trainer
