// Element-wise reduction on the GPU: kernels/reduce.h says what is computed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/launch.h"
#include "runtime/base/element_types.h"

namespace tern::cuda {

/// The kernel's arguments hold the pointers; worlds with more ranks reduce in two levels.
inline constexpr uint32_t kMaxSources = 64;

/// dst[i] = ((srcs[0][i] op srcs[1][i]) op srcs[2][i]) ..., in this order; dst may be any of the sources. 16-
/// and 8-bit floats are combined in fp32 and rounded once. Bytes: (n_srcs + 1) * n * size_of(dtype).
struct Reduce {
  Dtype dtype = Dtype::kFloat32;
  Op op = Op::kSum;  ///< kAvg and kPremulSum add: see Average and Scale
  void* dst = nullptr;
  const void* srcs[kMaxSources] = {};
  uint32_t n_srcs = 0;
  size_t n = 0;  ///< elements
  const char* wrong() const {
    if (n_srcs == 0 || n_srcs > kMaxSources) return "there must be 1 to 64 sources";
    bool aligned = aligned_to(size_of(dtype), dst);
    for (uint32_t s = 0; s < n_srcs; ++s) aligned = aligned && aligned_to(size_of(dtype), srcs[s]);
    return aligned ? nullptr : kMisaligned;
  }
};

/// data[i] /= n_ranks: what kAvg does to a sum. Bytes: 2 * n * size_of(dtype).
struct Average {
  Dtype dtype = Dtype::kFloat32;
  void* data = nullptr;
  int n_ranks = 1;
  size_t n = 0;
  const char* wrong() const {
    if (n_ranks < 1) return "n_ranks must be positive";
    return aligned_to(size_of(dtype), data) ? nullptr : kMisaligned;
  }
};

/// out[i] = in[i] * factor: what kPremulSum does to an input; `out` may be `in`. Bytes: 2 * n *
/// size_of(dtype).
struct Scale {
  Dtype dtype = Dtype::kFloat32;
  const void* in = nullptr;
  void* out = nullptr;
  double factor = 1;  ///< taken as an element (integers: truncated) or, for short floats, as fp32
  size_t n = 0;
  const char* wrong() const { return aligned_to(size_of(dtype), in, out) ? nullptr : kMisaligned; }
};

}  // namespace tern::cuda
