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
    case Op::kPremulSum:
      return reduce_all<T, Op::kSum>(args);
    case Op::kProd:
      return reduce_all<T, Op::kProd>(args);
    case Op::kMin:
      return reduce_all<T, Op::kMin>(args);
    case Op::kMax:
      return reduce_all<T, Op::kMax>(args);
  }
}

}  // namespace

void reduce_to_many(const ReduceArgs& args) {
  with_type(args.dtype, [&]<class T>(std::type_identity<T>) { reduce_of<T>(args); });
}

void average(Dtype dtype, void* data, int n_ranks, size_t n) {
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    T* x = static_cast<T*>(data);
    for (size_t i = 0; i < n; ++i) x[i] = divided(x[i], n_ranks);
  });
}

void scale(const ScaleArgs& args) {
  with_type(args.dtype, [&]<class T>(std::type_identity<T>) {
    const T* in = static_cast<const T*>(args.in);
    T* out = static_cast<T*>(args.out);
    for (size_t i = 0; i < args.n; ++i) out[i] = scaled(in[i], args.factor);
  });
}

}  // namespace tern::scalar
