// Conversions: a thread takes eight elements, 16 bytes of the short type and twice 16 of fp32.
#pragma once

#include "kernels/arithmetic.h"
#include "kernels/cuda/convert.h"
#include "kernels/cuda/run.cuh"

namespace tern::cuda {

inline constexpr int kConvertRun = 8;

template <class T>
constexpr simt::Shape shape(const Narrow<T>& args) {
  return run_shape(args.n, kConvertRun);
}
template <class T>
constexpr simt::Shape shape(const Widen<T>& args) {
  return run_shape(args.n, kConvertRun);
}

/// The bits that are all set in an inf or a NaN.
constexpr uint32_t exponent_bits(Bfloat16 /*x*/) {
  return 0x7F80;
}
constexpr uint32_t exponent_bits(Float16 /*x*/) {
  return 0x7C00;
}

template <class T>
TERN_DEVICE void body(const Narrow<T>& args) {
  const size_t begin = run_begin(kConvertRun);
  const auto in = load_run<kConvertRun>(Global<const float>(args.in), begin, args.n);
  Run<T, kConvertRun> out;
  uint32_t n_non_finite = 0;
  for (int i = 0; i < kConvertRun; ++i) {
    out.at[i] = narrow<T>(in.at[i]);
    const uint32_t exponent = exponent_bits(out.at[i]);
    n_non_finite += (out.at[i].bits & exponent) == exponent ? 1 : 0;
  }
  store_run(Global(args.out), begin, args.n, out);
  n_non_finite = __reduce_add_sync(kAllLanes, n_non_finite);
  if (n_non_finite > 0 && threadIdx.x % simt::kWarpSize == 0)
    Global(args.n_non_finite).atomic_add(0, n_non_finite);
}

template <class T>
TERN_DEVICE void body(const Widen<T>& args) {
  const size_t begin = run_begin(kConvertRun);
  const auto in = load_run<kConvertRun>(Global<const T>(args.in), begin, args.n);
  Run<float, kConvertRun> out = {};
  if (args.accumulate) out = load_run<kConvertRun>(Global<const float>(args.out), begin, args.n);
  for (int i = 0; i < kConvertRun; ++i) {
    const float x = to_float(in.at[i]);
    out.at[i] = args.accumulate ? out.at[i] + x : x;
  }
  store_run(Global(args.out), begin, args.n, out);
}

}  // namespace tern::cuda
