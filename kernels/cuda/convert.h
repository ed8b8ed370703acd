// fp32 to and from bf16 and fp16 on the GPU, with the rounding of kernels/convert.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/launch.h"
#include "runtime/base/element_types.h"

namespace tern::cuda {

/// out[i] = in[i] rounded to the nearest T, ties to even. Bytes: 4 + 2 per element.
template <class T>
struct Narrow {
  const float* in = nullptr;
  T* out = nullptr;
  size_t n = 0;
  uint32_t* n_non_finite = nullptr;  ///< the number of results that are inf or NaN is added to it
  const char* wrong() const {
    return aligned_to(4, in, n_non_finite) && aligned_to(2, out) ? nullptr : kMisaligned;
  }
};
using ToBfloat16 = Narrow<Bfloat16>;
using ToFloat16 = Narrow<Float16>;

/// out[i] = in[i] (exact), or out[i] += in[i]. Bytes: 2 + 4 per element, 2 + 8 when it adds.
template <class T>
struct Widen {
  const T* in = nullptr;
  float* out = nullptr;
  size_t n = 0;
  bool accumulate = false;
  const char* wrong() const { return aligned_to(2, in) && aligned_to(4, out) ? nullptr : kMisaligned; }
};
using FromBfloat16 = Widen<Bfloat16>;
using FromFloat16 = Widen<Float16>;

}  // namespace tern::cuda
