#include "kernels/cuda/memory.h"

#include <cuda_runtime_api.h>

#include "kernels/cuda/error.h"

namespace tern::cuda {

Result<DeviceMemory> DeviceMemory::create(size_t n_bytes) {
  void* data = nullptr;
  TERN_TRY(status_of(cudaMalloc(&data, n_bytes)));
  return DeviceMemory(data);
}

DeviceMemory::~DeviceMemory() {
  cudaFree(data_);
}

Status DeviceMemory::copy_in(std::span<const std::byte> from) const {
  return status_of(cudaMemcpy(data_, from.data(), from.size(), cudaMemcpyHostToDevice));
}

Status DeviceMemory::copy_out(std::span<std::byte> to) const {
  TERN_TRY(status_of(cudaDeviceSynchronize()));
  return status_of(cudaMemcpy(to.data(), data_, to.size(), cudaMemcpyDeviceToHost));
}

}  // namespace tern::cuda
