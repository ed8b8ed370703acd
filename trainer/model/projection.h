// Linear layers on the flat parameter buffer; neighbours that share their input are one product.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/kernels/gemm.h"
#include "trainer/model/parameters.h"

namespace tern::trainer {

/// One or more weights [out, in] applied to the same input, their outputs side by side in a row: (q, k, v)
/// and (gate, up). Weights that touch in the flat buffer are multiplied as one.
struct Projection {
  /// A run of touching weights.
  struct Slab {
    int64_t offset = 0;  ///< first element in the flat buffer
    int64_t rows = 0;    ///< outputs
    int64_t column = 0;  ///< of the first output within an output row
  };
  std::vector<Slab> slabs;
  int64_t inputs = 0;
  int64_t outputs = 0;

  /// Parameters first_param .. first_param + n - 1.
  Projection(const ParameterLayout& layout, int first_param, int n);
};

/// Inputs (rows, in) and outputs (rows, out) of a projection, either of which is the result.
template <class T>
struct Flow {
  Rows<const T> from;
  Rows<T> to;
  T alpha = 1;
  T beta = 0;  ///< times what `to` held
};

/// to (rows, outputs) = alpha * from (rows, inputs) W^T + beta * to, on the calling thread.
template <class T>
void project(const Projection& projection, const T* params, const Flow<T>& flow);

/// to (rows, inputs) = alpha * from (rows, outputs) W + beta * to: the gradient of the input, on the calling
/// thread.
template <class T>
void project_back(const Projection& projection, const T* params, const Flow<T>& flow);

/// What a weight gradient is made of.
template <class T>
struct WeightGradient {
  Rows<const T> dy;  // (rows, outputs)
  Rows<const T> x;   // (rows, inputs)
  T alpha = 1;
};

/// Gradient of the weights += alpha * dy^T x, shared out among the team. grads: the flat buffer.
template <class T>
void add_weight_gradient(Team& team, const Projection& projection, const WeightGradient<T>& args, T* grads);

extern template void project(const Projection&, const float*, const Flow<float>&);
extern template void project(const Projection&, const double*, const Flow<double>&);
extern template void project_back(const Projection&, const float*, const Flow<float>&);
extern template void project_back(const Projection&, const double*, const Flow<double>&);
extern template void add_weight_gradient(Team&, const Projection&, const WeightGradient<float>&, float*);
extern template void add_weight_gradient(Team&, const Projection&, const WeightGradient<double>&, double*);

}  // namespace tern::trainer
