// Reduction: a thread takes 16 bytes of each source, one access per source, and keeps them in registers.
// There is a kernel per dtype; the operator is a branch that all threads take alike.
#pragma once

#include "kernels/arithmetic.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/run.cuh"

namespace tern::cuda {

/// The same arguments for elements of type T, = the dtype in them.
template <class T, class Args>
struct Typed : Args {};

template <class T, class Args>
constexpr simt::Shape shape(const Typed<T, Args>& args) {
  return run_shape(args.n, kPerAccess<T>);
}

template <Op op, class T>
TERN_DEVICE void reduce_run(const Typed<T, Reduce>& args) {
  constexpr int kLength = kPerAccess<T>;
  const size_t begin = run_begin(kLength);
  Run<T, kLength> in = load_run<kLength>(Global(static_cast<const T*>(args.srcs[0])), begin, args.n);
  Accumulator<T> sum[kLength];
  for (int i = 0; i < kLength; ++i) sum[i] = widen(in.at[i]);
  for (uint32_t s = 1; s < args.n_srcs; ++s) {
    in = load_run<kLength>(Global(static_cast<const T*>(args.srcs[s])), begin, args.n);
    for (int i = 0; i < kLength; ++i) sum[i] = apply<op>(sum[i], widen(in.at[i]));
  }
  for (int i = 0; i < kLength; ++i) in.at[i] = narrow<T>(sum[i]);
  store_run(Global(static_cast<T*>(args.dst)), begin, args.n, in);
}

template <class T>
TERN_DEVICE void body(const Typed<T, Reduce>& args) {
  switch (args.op) {
    case Op::kSum:
    case Op::kAvg:
    case Op::kPremulSum:
      return reduce_run<Op::kSum>(args);
    case Op::kProd:
      return reduce_run<Op::kProd>(args);
    case Op::kMin:
      return reduce_run<Op::kMin>(args);
    case Op::kMax:
      return reduce_run<Op::kMax>(args);
  }
}

template <class T>
TERN_DEVICE void body(const Typed<T, Average>& args) {
  constexpr int kLength = kPerAccess<T>;
  const size_t begin = run_begin(kLength);
  const Global data(static_cast<T*>(args.data));
  auto run = load_run<kLength>(data, begin, args.n);
  for (int i = 0; i < kLength; ++i) run.at[i] = divided(run.at[i], args.n_ranks);
  store_run(data, begin, args.n, run);
}

template <class T>
TERN_DEVICE void body(const Typed<T, Scale>& args) {
  constexpr int kLength = kPerAccess<T>;
  const size_t begin = run_begin(kLength);
  auto run = load_run<kLength>(Global(static_cast<const T*>(args.in)), begin, args.n);
  for (int i = 0; i < kLength; ++i) run.at[i] = scaled(run.at[i], args.factor);
  store_run(Global(static_cast<T*>(args.out)), begin, args.n, run);
}

}  // namespace tern::cuda
