// Short floats on their way through fp32: a run of kRunGrain elements at a time, which stays in the
// first-level cache.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "runtime/codec/codec.h"

namespace tern {

/// out = in (exact); in.n == out.size().
void widen_run(const ConstView& in, std::span<float> out);
/// out = in, rounded once; in.size() == out.n, no overlap.
void narrow_run(std::span<const float> in, View out);

/// Elements [begin, begin + in.size()) of what is encoded, as fp32.
struct EncodeRun {
  size_t begin = 0;
  std::span<const float> in = {};
  float* residual = nullptr;  ///< of these elements
};

/// f(EncodeRun) over all elements in order: one run of fp32 elements as they lie, else runs of kRun, a
/// multiple of kRunGrain. Longer ones are for kernels that learn from block to block; they stay in the
/// second-level cache.
template <size_t kRun = kRunGrain, class F>
void each_run(const EncodeArgs& args, F f) {
  static_assert(kRun % kRunGrain == 0);
  if (args.in.dtype == Dtype::kFloat32) {
    f(EncodeRun{0, {static_cast<const float*>(args.in.data), args.in.n}, args.residual});
    return;
  }
  alignas(64) std::array<float, kRun> widened;
  for (size_t begin = 0; begin < args.in.n; begin += kRun) {
    const size_t n = std::min(kRun, args.in.n - begin);
    const auto* from = static_cast<const std::byte*>(args.in.data) + begin * size_of(args.in.dtype);
    widen_run({from, n, args.in.dtype}, {widened.data(), n});
    f(EncodeRun{begin, {widened.data(), n}, args.residual != nullptr ? args.residual + begin : nullptr});
  }
}

}  // namespace tern
