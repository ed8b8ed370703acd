// q8 on the GPU: kernels/q8.h says what the bytes are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/q8.h"

namespace tern::cuda {

/// Bytes: 4 + 1.016 per element, 12 + 1.016 with a residual; `in` is read once.
struct Q8Encode {
  const float* in = nullptr;
  float* residual = nullptr;  ///< null: none
  size_t n = 0;
  BlockPlanes out = {};                 ///< scales aligned to 2 bytes
  uint32_t* n_non_finite = nullptr;  ///< the number of non-finite blocks is added to it
  const char* wrong() const {
    return aligned_to(4, in, residual, n_non_finite) && aligned_to(2, out.scales) ? nullptr : kMisaligned;
  }
};
Status launch(Stream stream, const Q8Encode& args);

/// Bytes: 1.016 + 4 per element, 1.016 + 8 when it adds.
struct Q8Decode {
  BlockView in = {};  ///< scales aligned to 2 bytes
  float* out = nullptr;
  size_t n = 0;
  bool accumulate = false;  ///< out += the decoded elements
  const char* wrong() const { return aligned_to(4, out) && aligned_to(2, in.scales) ? nullptr : kMisaligned; }
};
Status launch(Stream stream, const Q8Decode& args);

}  // namespace tern::cuda
