// The fused AdamW update of a range of the flat parameter buffer.
#pragma once

#include <cstdint>
#include <span>

#include "trainer/kernels/team.h"

namespace tern::trainer {

/// Hyper-parameters of one update; defaults are DeepSpeed's and torch's.
struct AdamW {
  int64_t step = 1;  ///< of this update, from 1; bias correction divides by 1 - beta^step
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  double grad_scale = 1.0;  ///< multiplies every gradient: clip factor / (loss scale * token count)
};

/// params, m, v <- AdamW(params, grads, m, v), element by element; grads are only read.
///
///   g = grad_scale * grad;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///   param = param * (1 - lr * weight_decay) - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
///
/// All spans have the same size; they may be any range of the flat buffer, and must not overlap. An element's
/// result depends neither on the range nor on the team. Decay applies to every element of the range, as torch
/// and DeepSpeed do for a single parameter group; call once per group to exempt some. Moves 28 bytes per fp32
/// element. Source: Loshchilov & Hutter, ICLR 2019; Kingma & Ba, ICLR 2015.
template <class T>
void adamw_step(Team& team, const AdamW& adamw, std::span<T> params, std::span<const T> grads, std::span<T> m,
                std::span<T> v);

extern template void adamw_step(Team&, const AdamW&, std::span<float>, std::span<const float>,
                                std::span<float>, std::span<float>);
extern template void adamw_step(Team&, const AdamW&, std::span<double>, std::span<const double>,
                                std::span<double>, std::span<double>);

}  // namespace tern::trainer
