// A thread's run of neighbouring elements, moved by 16-byte accesses where the run is whole and aligned.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/simt/shape.h"

namespace tern::cuda {

inline constexpr uint32_t kRunThreads = 256;

/// One thread per run of `length` elements.
constexpr simt::Shape run_shape(size_t n, size_t length) {
  const size_t per_block = length * kRunThreads;
  return {.grid = static_cast<uint32_t>((n + per_block - 1) / per_block), .block = kRunThreads};
}

TERN_DEVICE size_t run_begin(size_t length) {
  return (size_t{blockIdx.x} * kRunThreads + threadIdx.x) * length;
}

template <class T, int length>
struct Run {
  T at[length];
};

/// How many elements of type T one access moves.
template <class T>
inline constexpr int kPerAccess = static_cast<int>(16 / sizeof(T));

/// Elements begin .. begin + length - 1 of n; zeros beyond the end.
template <int length, class T>
TERN_DEVICE Run<std::remove_const_t<T>, length> load_run(const Global<T>& in, size_t begin, size_t n) {
  Run<std::remove_const_t<T>, length> run = {};
  if (begin + length <= n && in.aligned(begin)) {
    for (int i = 0; i < length; i += kPerAccess<T>) {
      const auto part = in.template load_vector<kPerAccess<T>>(begin + i);
      for (int j = 0; j < kPerAccess<T>; ++j) run.at[i + j] = part.at[j];
    }
    return run;
  }
  for (int i = 0; i < length; ++i) {
    if (begin + i < n) run.at[i] = in.load(begin + i);
  }
  return run;
}

template <int length, class T>
TERN_DEVICE void store_run(const Global<T>& out, size_t begin, size_t n, const Run<T, length>& run) {
  if (begin + length <= n && out.aligned(begin)) {
    for (int i = 0; i < length; i += kPerAccess<T>) {
      Vec<T, kPerAccess<T>> part;
      for (int j = 0; j < kPerAccess<T>; ++j) part.at[j] = run.at[i + j];
      out.store_vector(begin + i, part);
    }
    return;
  }
  for (int i = 0; i < length; ++i) {
    if (begin + i < n) out.store(begin + i, run.at[i]);
  }
}

}  // namespace tern::cuda
