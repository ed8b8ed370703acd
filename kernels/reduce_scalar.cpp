#include "kernels/arithmetic.h"
#include "kernels/scalar.h"

namespace tern::scalar {
namespace {

template <class T, Op op>
void reduce_all(const ReduceArgs& args) {
  for (size_t i = 0; i < args.n; ++i) {
    Accumulator<T> sum = widen(static_cast<const T*>(args.srcs[0])[i]);
    for (const void* src : args.srcs.subspan(1)) sum = apply<op>(sum, widen(static_cast<const T*>(src)[i]));
    for (void* dst : args.dsts) static_cast<T*>(dst)[i] = narrow<T>(sum);
  }
}

template <class T>
void reduce_of(const ReduceArgs& args) {
  switch (args.op) {
    case Op::kSum:
    case Op::kAvg:
      return reduce_all<T, Op::kSum>(args);
    case Op::kProd:
      return reduce_all<T, Op::kProd>(args);
    case Op::kMin:
      return reduce_all<T, Op::kMin>(args);
    case Op::kMax:
      return reduce_all<T, Op::kMax>(args);
  }
}

template <class T>
void average_of(void* data, int n_ranks, size_t n) {
  T* x = static_cast<T*>(data);
  for (size_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<T>)
      x[i] = static_cast<T>(x[i] / static_cast<int64_t>(n_ranks));
    else
      x[i] = narrow<T>(widen(x[i]) / static_cast<Accumulator<T>>(n_ranks));
  }
}

}  // namespace

void reduce_to_many(const ReduceArgs& args) {
  switch (args.dtype) {
    case Dtype::kFloat32:
      return reduce_of<float>(args);
    case Dtype::kFloat64:
      return reduce_of<double>(args);
    case Dtype::kFloat16:
      return reduce_of<Float16>(args);
    case Dtype::kBfloat16:
      return reduce_of<Bfloat16>(args);
    case Dtype::kInt32:
      return reduce_of<int32_t>(args);
    case Dtype::kInt64:
      return reduce_of<int64_t>(args);
    case Dtype::kUint8:
      return reduce_of<uint8_t>(args);
  }
}

void average(Dtype dtype, void* data, int n_ranks, size_t n) {
  switch (dtype) {
    case Dtype::kFloat32:
      return average_of<float>(data, n_ranks, n);
    case Dtype::kFloat64:
      return average_of<double>(data, n_ranks, n);
    case Dtype::kFloat16:
      return average_of<Float16>(data, n_ranks, n);
    case Dtype::kBfloat16:
      return average_of<Bfloat16>(data, n_ranks, n);
    case Dtype::kInt32:
      return average_of<int32_t>(data, n_ranks, n);
    case Dtype::kInt64:
      return average_of<int64_t>(data, n_ranks, n);
    case Dtype::kUint8:
      return average_of<uint8_t>(data, n_ranks, n);
  }
}

}  // namespace tern::scalar
