// Softmax, cross-entropy and the gradient of the logits in one pass over a row.
#pragma once

#include <cstdint>

#include "trainer/kernels/rows.h"

namespace tern::trainer {

/// losses[row] = log(sum of exp(logits)) - logits[target]; logits <- softmax(logits) - one_hot(target), the
/// gradient of that loss. A row with a negative target has loss 0 and gradient 0. A logit that is not finite
/// makes its row's loss NaN or infinite.
template <class T>
struct CrossEntropy {
  const int32_t* targets = nullptr;  // (rows), < V
  Rows<T> logits;                    // (rows, V)
  double* losses = nullptr;          // (rows)
};

/// On the calling thread.
void cross_entropy(const CrossEntropy<float>& args);
void cross_entropy(const CrossEntropy<double>& args);

}  // namespace tern::trainer
