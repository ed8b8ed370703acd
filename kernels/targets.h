// The instruction sets that the kernels were built for, and the choice among them.
#pragma once

#include <string_view>
#include <vector>

namespace tern {

/// Instruction sets that this build has and this processor can run, best first: "AVX3" (AVX-512), "AVX2",
/// "SSE4", "SCALAR". The first is the one in use.
std::vector<std::string_view> simd_targets();

/// While it lives, all kernels use the named instruction set (one of simd_targets(), else it throws).
/// Process-wide: for tests and benches, one at a time, not while another thread runs a kernel.
class OnlySimdTarget {
 public:
  explicit OnlySimdTarget(std::string_view name);
  ~OnlySimdTarget();
  OnlySimdTarget(const OnlySimdTarget&) = delete;
  OnlySimdTarget& operator=(const OnlySimdTarget&) = delete;
};

}  // namespace tern
