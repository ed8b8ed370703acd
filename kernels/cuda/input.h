// What encoders read: fp32, bf16 or fp16 elements.
#pragma once

#include "kernels/cuda/launch.h"
#include "runtime/base/element_types.h"

namespace tern::cuda {

/// Elements in device memory; 16-bit ones are widened on the way, which is exact.
struct Input {
  const void* data = nullptr;
  Dtype dtype = Dtype::kFloat32;

  Input() = default;
  Input(const float* elements) : data(elements) {}                              // NOLINT
  Input(const Bfloat16* elements) : data(elements), dtype(Dtype::kBfloat16) {}  // NOLINT
  Input(const Float16* elements) : data(elements), dtype(Dtype::kFloat16) {}    // NOLINT
  bool aligned() const { return aligned_to(size_of(dtype), data); }
  bool encodable() const {
    return dtype == Dtype::kFloat32 || dtype == Dtype::kBfloat16 || dtype == Dtype::kFloat16;
  }
};
inline constexpr const char* kNotEncodable = "encoders take fp32, bf16 and fp16";

}  // namespace tern::cuda
