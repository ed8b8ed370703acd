// The elementwise part of attention: causal softmax of a block of scores, and its gradient.
#pragma once

#include <cstdint>

#include "trainer/kernels/rows.h"

namespace tern::trainer {

/// A block of scores, rows [first_row, first_row + rows) of the square of all, columns [0, first_row + rows).
/// Row r may look at columns [0, first_row + r]; what lies right of that is set to zero.
struct CausalBlock {
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t stride = 0;  ///< elements from row to row of the scores
  int64_t columns() const { return first_row + rows; }
};

/// scores <- exp(score - largest of the row), not divided by the row's sum; inverse_sum[row] = 1 / sum;
/// lse[row] = log(sum of exp(score)). A score that is not finite makes its row's sum NaN.
void causal_softmax(const CausalBlock& block, float* scores, float* inverse_sum, float* lse);
void causal_softmax(const CausalBlock& block, double* scores, double* inverse_sum, double* lse);

/// scores <- p = exp(score - lse); d_scores, holding the gradient of p, <- p * (d_scores - dot[row]), the
/// gradient of the scores.
template <class T>
struct CausalSoftmaxBackward {
  CausalBlock block;
  const T* lse = nullptr;  // (rows)
  const T* dot = nullptr;  // (rows): sum of p * gradient of p
  T* scores = nullptr;     // (rows, stride)
  T* d_scores = nullptr;   // (rows, stride)
};
void causal_softmax_backward(const CausalSoftmaxBackward<float>& args);
void causal_softmax_backward(const CausalSoftmaxBackward<double>& args);

/// x[row] *= factor[row].
void scale_rows(const Rows<float>& x, const float* factor);
void scale_rows(const Rows<double>& x, const double* factor);

/// out[row] = sum of a[row] * b[row].
void dot_rows(const Rows<const float>& a, const Rows<const float>& b, float* out);
void dot_rows(const Rows<const double>& a, const Rows<const double>& b, double* out);

}  // namespace tern::trainer
