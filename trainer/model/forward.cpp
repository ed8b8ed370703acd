// The forward pass. Between two attentions everything is local to a row, so each thread takes its rows
// through a whole block (o_proj .. down_proj) in chunks, and meets the others only around
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
void copy(const Rows<T>& from, const Rows<T>& to) {
  for (int64_t i = 0; i < from.rows; ++i) std::copy_n(from.row(i), from.width, to.row(i));
}

/// scratch.normed = norm of some rows of x.
template <class T>
// NOLINTNEXTLINE(readability-function-size): the operands of the formula
void normalise(ModelState<T>& s, const T* weight, const Rows<T>& x, T* rstd, Range r) {
  rms_norm_forward(RmsNormForward<T>{.eps = static_cast<T>(s.config.rms_norm_eps),
                                     .x = x.part(r),
                                     .weight = weight,
                                     .rstd = rstd + r.begin,
                                     .y = s.scratch.normed.part(r)});
}

template <class T>
void input_to_qkv(ModelState<T>& s, const T* params, int layer) {
  const LayerWeights& w = s.weights[static_cast<size_t>(layer)];
  const LayerActivations<T>& a = s.layers[static_cast<size_t>(layer)];
  s.for_rows([&](Range r, int, Lap& lap) {
    normalise(s, params + w.input_norm, a.x, a.input_rstd, r);
    lap.add(&PassTimes::norm);
    project(w.qkv, params, Flow<T>{.from = s.scratch.normed.part(r), .to = a.qkv.part(r)});
    lap.add(&PassTimes::gemm);
    rotate(s.rotation(a.qkv, r, 1));
    lap.add(&PassTimes::attention);
  });
}

template <class T>
void attend(ModelState<T>& s, int layer) {
  const LayerActivations<T>& a = s.layers[static_cast<size_t>(layer)];
  s.for_key_heads([&](Range sequence, int64_t kv_head, int member) {
    attention_forward(AttentionForward<T>{.shape = s.attention_shape(),
                                          .qkv = a.qkv.part(sequence),
                                          .out = a.attention.part(sequence),
                                          .lse = a.lse + sequence.begin * s.config.heads,
                                          .scratch = s.attention_scratch_of(member)},
                      kv_head);
  });
}

/// x_next = x_mid + down(swiglu(gate_up(norm(x_mid)))), where x_mid = x + o(attention).
template <class T>
void attention_to_output(ModelState<T>& s, const T* params, int layer, const Rows<T>& x_next) {
  const LayerWeights& w = s.weights[static_cast<size_t>(layer)];
  const LayerActivations<T>& a = s.layers[static_cast<size_t>(layer)];
  s.for_rows([&](Range r, int, Lap& lap) {
    const Rows<T> x_mid = a.x_mid.part(r), out = x_next.part(r);
    const Rows<T> gate_up = a.gate_up.part(r), activated = s.scratch.activated.part(r);
    copy(a.x.part(r), x_mid);
    lap.add(&PassTimes::norm);
    project(w.o, params, Flow<T>{.from = a.attention.part(r), .to = x_mid, .beta = 1});
    lap.add(&PassTimes::gemm);
    normalise(s, params + w.post_attention_norm, a.x_mid, a.post_rstd, r);
    lap.add(&PassTimes::norm);
    project(w.gate_up, params, Flow<T>{.from = s.scratch.normed.part(r), .to = gate_up});
    lap.add(&PassTimes::gemm);
    swiglu_forward(SwigluForward<T>{.gate_up = gate_up, .out = activated});
    lap.add(&PassTimes::activation);
    copy(x_mid, out);
    lap.add(&PassTimes::norm);
    project(w.down, params, Flow<T>{.from = activated, .to = out, .beta = 1});
    lap.add(&PassTimes::gemm);
  });
}

template <class T>
void final_norm_and_head(ModelState<T>& s, const T* params) {
  s.for_rows([&](Range r, int, Lap& lap) {
    normalise(s, params + s.final_norm, s.scratch.x_final, s.scratch.final_rstd, r);
    lap.add(&PassTimes::norm);
    project(s.head, params, Flow<T>{.from = s.scratch.normed.part(r), .to = s.scratch.logits.part(r)});
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
  embed(params + s.layout[0].offset, tokens, s.layers.front().x);
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
    cross_entropy(CrossEntropy<T>{.targets = targets.data() + r.begin,
                                  .logits = s.scratch.logits.part(r),
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
