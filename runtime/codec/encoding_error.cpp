#include "runtime/codec/encoding_error.h"

#include <array>
#include <cmath>

#include "runtime/codec/runs.h"

namespace tern {
namespace {

/// Of one run of at most kRunGrain elements.
EncodingError error_of(std::span<const float> in, std::span<const float> decoded, const float* residual) {
  EncodingError error;
  for (size_t i = 0; i < in.size(); ++i) {
    // What was lost is the residual; what was encoded is both together.
    const double lost = residual != nullptr ? static_cast<double>(residual[i])
                                            : static_cast<double>(in[i]) - static_cast<double>(decoded[i]);
    const double value = static_cast<double>(decoded[i]) + lost;
    if (!std::isfinite(value)) continue;
    error.lost += lost * lost;
    error.value += value * value;
  }
  return error;
}

}  // namespace

EncodingError encoding_error(const EncodeArgs& args) {
  EncodingError error;
  std::array<float, kRunGrain> decoded;
  std::array<float, kRunGrain> widened;
  const size_t elt = size_of(args.in.dtype);
  for (size_t begin = 0; begin < args.in.n; begin += kRunGrain) {
    const size_t n = std::min(kRunGrain, args.in.n - begin);
    const std::span<float> out(decoded.data(), n);
    const std::span<float> in(widened.data(), n);
    info(args.spec.id).decode_run({args.spec, args.wire, args.in.n, begin, out, Decode::kSet});
    widen_run({static_cast<const std::byte*>(args.in.data) + begin * elt, n, args.in.dtype}, in);
    error += error_of(in, out, args.residual != nullptr ? args.residual + begin : nullptr);
  }
  return error;
}

}  // namespace tern
