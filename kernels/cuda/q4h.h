// q4h on the GPU: kernels/q4h.h says what the bytes are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/input.h"
#include "kernels/cuda/launch.h"
#include "kernels/q4h.h"

namespace tern::cuda {

/// Bytes: 4 + 0.52 per element, 12 + 0.52 with a residual.
struct Q4hEncode {
  Input in = {};
  float* residual = nullptr;  ///< null: none
  size_t n = 0;
  BlockPlanes out = {};              ///< scales aligned to 2 bytes
  uint32_t* n_non_finite = nullptr;  ///< the number of non-finite blocks is added to it
  bool stochastic = false;           ///< round as BlockInput says, else to the nearest
  ElementRandom random = {};
  const char* wrong() const {
    if (!in.encodable()) return kNotEncodable;
    return in.aligned() && aligned_to(4, residual, n_non_finite) && aligned_to(2, out.scales) ? nullptr
                                                                                              : kMisaligned;
  }
};

/// Bytes: 0.52 + 4 per element, 0.52 + 8 when it adds.
struct Q4hDecode {
  BlockView in = {};  ///< scales aligned to 2 bytes
  float* out = nullptr;
  size_t n = 0;
  Decode how = Decode::kSet;
  ElementRandom random = {};  ///< as it was for encoding
  const char* wrong() const { return aligned_to(4, out) && aligned_to(2, in.scales) ? nullptr : kMisaligned; }
};

}  // namespace tern::cuda
