// The one way from arguments to a kernel: kernel<Args> calls body(args), found by its argument.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/simt/shape.h"

namespace tern::cuda {

inline constexpr uint32_t kMaxThreads = 256;

template <class Args>
__global__ void __launch_bounds__(kMaxThreads) kernel(const __grid_constant__ Args args) {
  body(args);
}

/// Returns CUDA's error code; launch.cpp makes a Status of it.
template <class Args>
int enqueue_kernel(Stream stream, const Args& args) {
  const simt::Shape size = shape(args);
  if (size.grid == 0) return cudaSuccess;
  kernel<<<size.grid, size.block, size.shared_bytes, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace tern::cuda
