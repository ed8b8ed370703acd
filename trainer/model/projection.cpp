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

template <class T>
void project(const Projection& projection, const T* params, const Flow<T>& flow) {
  for (const Projection::Slab& slab : projection.slabs) {
    multiply(Product<T>{.m = flow.rows,
                        .n = slab.rows,
                        .k = projection.inputs,
                        .a = {flow.from, projection.inputs},
                        .b = {params + slab.offset, projection.inputs, true},
                        .c = flow.to + slab.column,
                        .c_stride = projection.outputs,
                        .alpha = flow.alpha,
                        .beta = flow.beta});
  }
}

template <class T>
void project_back(const Projection& projection, const T* params, const Flow<T>& flow) {
  T beta = flow.beta;
  for (const Projection::Slab& slab : projection.slabs) {
    multiply(Product<T>{.m = flow.rows,
                        .n = projection.inputs,
                        .k = slab.rows,
                        .a = {flow.from + slab.column, projection.outputs},
                        .b = {params + slab.offset, projection.inputs},
                        .c = flow.to,
                        .c_stride = projection.inputs,
                        .alpha = flow.alpha,
                        .beta = beta});
    beta = 1;  // further slabs add to the first
  }
}

template <class T>
void add_weight_gradient(Team& team, const Projection& projection, const WeightGradient<T>& args, T* grads) {
  for (const Projection::Slab& slab : projection.slabs) {
    multiply(team, Product<T>{.m = slab.rows,
                              .n = projection.inputs,
                              .k = args.rows,
                              .a = {args.dy + slab.column, projection.outputs, true},
                              .b = {args.x, projection.inputs},
                              .c = grads + slab.offset,
                              .c_stride = projection.inputs,
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
