// sign1 on the GPU: kernels/sign1.h says what the bytes are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/input.h"
#include "kernels/cuda/launch.h"
#include "kernels/sign1.h"

namespace tern::cuda {

/// Bytes: 4 + 0.13 per element, 12 + 0.13 with a residual; `in` and residual are read once. Uses 8.3 KB of
/// shared memory per block of 2048 elements.
struct Sign1Encode {
  Input in = {};
  float* residual = nullptr;  ///< null: none
  size_t n = 0;
  BlockPlanes out = {};              ///< scales aligned to 2 bytes
  uint32_t* n_non_finite = nullptr;  ///< the number of non-finite blocks is added to it
  const char* wrong() const {
    if (!in.encodable()) return kNotEncodable;
    return in.aligned() && aligned_to(4, residual, n_non_finite) && aligned_to(2, out.scales) ? nullptr
                                                                                              : kMisaligned;
  }
};

/// Bytes: 0.13 + 4 per element, 0.13 + 8 when it adds.
struct Sign1Decode {
  BlockView in = {};  ///< scales aligned to 2 bytes
  float* out = nullptr;
  size_t n = 0;
  Decode how = Decode::kSet;
  const char* wrong() const { return aligned_to(4, out) && aligned_to(2, in.scales) ? nullptr : kMisaligned; }
};

}  // namespace tern::cuda
