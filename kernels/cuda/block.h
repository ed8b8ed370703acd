// Block formats on the GPU: q8, q6, q5, fp16, fp8 and mxfp8 (kernels/block_formats.h). Their headers say what
// the bytes are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/block_codec.h"
#include "kernels/cuda/input.h"
#include "kernels/cuda/launch.h"
#include "kernels/fp16.h"
#include "kernels/fp8.h"
#include "kernels/mxfp8.h"
#include "kernels/q5.h"
#include "kernels/q6.h"
#include "kernels/q8.h"

namespace tern::cuda {

/// Encodes v = in, or in + residual; the residual then becomes what was lost, or
/// stays where a block is not finite. Bytes per element: 4 and the code, 12 and the code with a residual.
template <class Format>
struct BlockEncode {
  Input in = {};
  float* residual = nullptr;  ///< null: none
  size_t n = 0;
  BlockPlanes out = {};              ///< scales, and codes of two bytes, aligned to 2
  uint32_t* n_non_finite = nullptr;  ///< the number of non-finite blocks is added to it
  uint32_t* n_saturated = nullptr;   ///< the number of clamped elements is added to it
  bool stochastic = false;  ///< integers: round as BlockInput says, with `random`; else to the nearest
  ElementRandom random = {};
  const char* wrong() const {
    if (!in.encodable()) return kNotEncodable;
    return in.aligned() && aligned_to(4, residual, n_non_finite, n_saturated) && aligned_to(2, out.scales)
               ? nullptr
               : kMisaligned;
  }
};

/// out = the decoded elements, or out += them. Bytes per element: the code and 4, or 8 when it adds.
template <class Format>
struct BlockDecode {
  BlockView in = {};
  float* out = nullptr;
  size_t n = 0;
  Decode how = Decode::kSet;
  const char* wrong() const { return aligned_to(4, out) && aligned_to(2, in.scales) ? nullptr : kMisaligned; }
};

}  // namespace tern::cuda
