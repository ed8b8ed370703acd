// Blocks of floats that a codec must survive: plain, heavy-tailed, tied, sparse, constant, tiny, huge and not
// finite.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "runtime/base/philox.h"

namespace tern::test {

struct GradientKind {
  std::string_view name;
  bool finite;
  /// Element i of a tensor, given two uniform numbers in (-1, 1).
  float (*element)(size_t i, float u, float w);
};

inline constexpr GradientKind kGradientKinds[] = {
    {"bell shaped", true, [](size_t, float u, float w) { return u * w * std::abs(u + w); }},
    {"heavy tailed", true,
     [](size_t, float u, float) { return std::copysign(std::pow(std::abs(u) + 1e-4F, -0.7F), u); }},
    {"all equal", true, [](size_t, float, float) { return 0.25F; }},
    {"equal up to the sign", true, [](size_t, float u, float) { return std::copysign(3.0F, u); }},
    {"few distinct values", true, [](size_t, float u, float) { return std::round(u * 3) * 0.1F; }},
    {"zero", true, [](size_t, float, float) { return 0.0F; }},
    {"minus zero", true, [](size_t, float, float) { return -0.0F; }},
    {"half zero", true, [](size_t i, float u, float) { return i % 4096 < 2048 ? 0.0F : u; }},
    {"one in a thousand not zero", true, [](size_t i, float u, float) { return i % 1000 == 7 ? u : 0.0F; }},
    {"every 16th not zero", true, [](size_t i, float u, float) { return i % 16 == 3 ? u : 0.0F; }},
    {"ascending", true, [](size_t i, float, float) { return static_cast<float>(i); }},
    {"one large among small", true, [](size_t i, float u, float) { return i % 128 == 77 ? 1e6F : u; }},
    {"subnormal", true, [](size_t, float u, float) { return u * 1e-40F; }},
    {"smallest", true, [](size_t, float u, float) { return u > 0 ? 1e-45F : -1e-45F; }},
    {"below 2^-100", true, [](size_t, float u, float) { return u * 1e-36F; }},
    {"huge", true, [](size_t, float u, float) { return u * 3.4e38F; }},
    {"largest", true,
     [](size_t i, float u, float) { return i % 3 == 0 ? std::numeric_limits<float>::max() : u; }},
    {"many magnitudes", true, [](size_t, float u, float w) { return u * std::exp2(80 * w); }},
    {"one NaN", false, [](size_t i, float u, float) { return i % 5000 == 4321 ? NAN : u; }},
    {"one infinity", false,
     [](size_t i, float u, float) { return i % 5000 == 321 ? std::numeric_limits<float>::infinity() : u; }},
};

inline std::vector<float> gradient(const GradientKind& kind, size_t n, uint64_t seed) {
  Philox random(seed);
  const auto uniform = [&] { return static_cast<float>(static_cast<int32_t>(random.next())) * 0x1p-31F; };
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) {
    const float u = uniform();
    const float w = uniform();
    out[i] = kind.element(i, u, w);
  }
  return out;
}

}  // namespace tern::test
