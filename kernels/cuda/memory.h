// Memory of the GPU with one owner.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "kernels/cuda/launch.h"
#include "runtime/base/status.h"

namespace tern::cuda {

/// Owns n_bytes of device memory. Copies wait for all work on the device before and for themselves after.
class DeviceMemory {
 public:
  /// Errors: kUnsupported (no GPU), kInternal (CUDA's own words).
  static Result<DeviceMemory> create(size_t n_bytes);
  DeviceMemory(DeviceMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  DeviceMemory& operator=(DeviceMemory&&) = delete;
  ~DeviceMemory();

  void* data() const { return data_; }
  Status copy_in(std::span<const std::byte> from) const;
  Status copy_out(std::span<std::byte> to) const;

 private:
  explicit DeviceMemory(void* data) : data_(data) {}
  void* data_;
};

}  // namespace tern::cuda
