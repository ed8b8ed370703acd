#include "trainer/model/projection.h"

namespace tern::trainer {

Projection::Projection(const ParameterLayout& layout, int first_param, int n)
    : inputs(layout[first_param].cols) {
  for (int i = first_param; i < first_param + n; ++i) {
    const Parameter& p = layout[i];
    if (!slabs.empty() && slabs.back().offset + slabs.back().rows * inputs == p.offset) {
      slabs.back().rows += p.rows;
    } else {
      slabs.push_back({p.offset, p.rows, outputs});
    }
    outputs += p.rows;
  }
}

namespace {

/// A slab of the weights, or of their gradients, as a matrix.
template <class T>
Rows<T> matrix_of(const Projection& projection, const Projection::Slab& slab, T* flat) {
  return {flat + slab.offset, slab.rows, projection.inputs, projection.inputs};
}

}  // namespace

template <class T>
void project(const Projection& projection, const T* params, const Flow<T>& flow) {
  for (const Projection::Slab& slab : projection.slabs) {
    multiply(Product<T>{.a = flow.from,
                        .b = {matrix_of(projection, slab, params), true},
                        .c = flow.to.columns(slab.column, slab.rows),
                        .alpha = flow.alpha,
                        .beta = flow.beta});
  }
}

template <class T>
void project_back(const Projection& projection, const T* params, const Flow<T>& flow) {
  T beta = flow.beta;
  for (const Projection::Slab& slab : projection.slabs) {
    multiply(Product<T>{.a = flow.from.columns(slab.column, slab.rows),
                        .b = matrix_of(projection, slab, params),
                        .c = flow.to,
                        .alpha = flow.alpha,
                        .beta = beta});
    beta = 1;  // further slabs add to the first
  }
}

template <class T>
void add_weight_gradient(Team& team, const Projection& projection, const WeightGradient<T>& args, T* grads) {
  for (const Projection::Slab& slab : projection.slabs) {
    multiply(team, Product<T>{.a = {args.dy.columns(slab.column, slab.rows), true},
                              .b = args.x,
                              .c = matrix_of(projection, slab, grads),
                              .alpha = args.alpha,
                              .beta = 1});
  }
}

template void project(const Projection&, const float*, const Flow<float>&);
template void project(const Projection&, const double*, const Flow<double>&);
template void project_back(const Projection&, const float*, const Flow<float>&);
template void project_back(const Projection&, const double*, const Flow<double>&);
template void add_weight_gradient(Team&, const Projection&, const WeightGradient<float>&, float*);
template void add_weight_gradient(Team&, const Projection&, const WeightGradient<double>&, double*);

}  // namespace tern::trainer
