// topk on the GPU: kernels/topk.h says what the bytes are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/input.h"
#include "kernels/cuda/launch.h"
#include "kernels/topk.h"

namespace tern::cuda {

/// What is wrong with k, or null.
constexpr const char* wrong_k(int k) {
  for (const int choice : kTopkChoices) {
    if (k == choice) return nullptr;
  }
  return "k is none of 16, 32, 64, 128";
}

/// Bytes: 4 per element, 12 with a residual; `in` and residual are read once. Uses 416 bytes of shared memory
/// per block of 4096 elements.
struct TopkEncode {
  Input in = {};
  float* residual = nullptr;  ///< null: none
  size_t n = 0;
  int k = 32;
  TopkPlanes out = {};               ///< scales aligned to 2 bytes
  uint32_t* n_non_finite = nullptr;  ///< the number of non-finite blocks is added to it
  const char* wrong() const {
    if (wrong_k(k) != nullptr) return wrong_k(k);
    if (!in.encodable()) return kNotEncodable;
    return in.aligned() && aligned_to(4, residual, n_non_finite) && aligned_to(2, out.scales) ? nullptr
                                                                                              : kMisaligned;
  }
};

/// Bytes: 4 per element and 8 per kept entry; when it adds, only the latter. Of two entries with one index,
/// which only damaged bytes have, either may win.
struct TopkDecode {
  TopkView in = {};  ///< scales aligned to 2 bytes
  float* out = nullptr;
  size_t n = 0;
  int k = 32;
  bool accumulate = false;  ///< adds the kept values at their places and touches nothing else
  const char* wrong() const {
    if (wrong_k(k) != nullptr) return wrong_k(k);
    return aligned_to(4, out) && aligned_to(2, in.scales) ? nullptr : kMisaligned;
  }
};

}  // namespace tern::cuda
