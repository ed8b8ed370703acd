// RMSNorm and its gradient.
#pragma once

#include "trainer/kernels/rows.h"

namespace tern::trainer {

/// rstd[row] = 1 / sqrt(mean(x^2) + eps); y = x * rstd * weight. Source: Zhang & Sennrich, NeurIPS 2019.
template <class T>
struct RmsNormForward {
  T eps = 0;
  Rows<const T> x;
  const T* weight = nullptr;  // (width)
  T* rstd = nullptr;          // (rows)
  Rows<T> y;
};

/// dx = residual (nothing when its data is null) + gradient through the norm;
/// dweight (width) += sum over rows of dy * x * rstd. dx may be residual.
template <class T>
struct RmsNormBackward {
  Rows<const T> x;
  const T* rstd = nullptr;
  const T* weight = nullptr;
  Rows<const T> dy;
  Rows<const T> residual;
  Rows<T> dx;
  T* dweight = nullptr;
};

/// y = x * rstd * weight once more, for a backward pass that did not keep it: the same bits as the forward
/// pass.
template <class T>
struct RmsNormAgain {
  Rows<const T> x;
  const T* rstd = nullptr;
  const T* weight = nullptr;
  Rows<T> y;
};

/// On the calling thread; rows are independent of each other. The mean of squares is summed in T.
void rms_norm_forward(const RmsNormForward<float>& args);
void rms_norm_forward(const RmsNormForward<double>& args);
void rms_norm_backward(const RmsNormBackward<float>& args);
void rms_norm_backward(const RmsNormBackward<double>& args);
void rms_norm_again(const RmsNormAgain<float>& args);
void rms_norm_again(const RmsNormAgain<double>& args);

}  // namespace tern::trainer
