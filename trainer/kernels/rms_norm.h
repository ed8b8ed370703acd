// RMSNorm and its gradient.
#pragma once

#include <cstdint>

namespace tern::trainer {

/// rstd[row] = 1 / sqrt(mean(x^2) + eps); y = x * rstd * weight. Source: Zhang & Sennrich, NeurIPS 2019.
template <class T>
struct RmsNormForward {
  int64_t rows = 0;
  int64_t width = 0;
  T eps = 0;
  const T* x = nullptr;       // (rows, width)
  const T* weight = nullptr;  // (width)
  T* rstd = nullptr;          // (rows)
  T* y = nullptr;             // (rows, width)
};

/// dx (rows, width) = residual (nothing when null) + gradient through the norm;
/// dweight (width) += sum over rows of dy * x * rstd. dx may be residual.
template <class T>
struct RmsNormBackward {
  int64_t rows = 0;
  int64_t width = 0;
  const T* x = nullptr;
  const T* rstd = nullptr;
  const T* weight = nullptr;
  const T* dy = nullptr;
  const T* residual = nullptr;
  T* dx = nullptr;
  T* dweight = nullptr;
};

/// y = x * rstd * weight once more, for a backward pass that did not keep it: the same bits as the forward
/// pass.
template <class T>
struct RmsNormAgain {
  int64_t rows = 0;
  int64_t width = 0;
  const T* x = nullptr;
  const T* rstd = nullptr;
  const T* weight = nullptr;
  T* y = nullptr;
};

/// On the calling thread; rows are independent of each other. The mean of squares is summed in T.
void rms_norm_forward(const RmsNormForward<float>& args);
void rms_norm_forward(const RmsNormForward<double>& args);
void rms_norm_backward(const RmsNormBackward<float>& args);
void rms_norm_backward(const RmsNormBackward<double>& args);
void rms_norm_again(const RmsNormAgain<float>& args);
void rms_norm_again(const RmsNormAgain<double>& args);

}  // namespace tern::trainer
