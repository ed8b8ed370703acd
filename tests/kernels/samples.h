// Inputs for kernel tests: values that rounding, NaN and overflow rules can get wrong, and plain random ones.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/arithmetic.h"
#include "runtime/base/philox.h"

namespace tern::test {

/// The value as element type T (integers take it modulo their range).
template <class T>
T element(double x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<int64_t>(x * 1000));
  else
    return narrow<T>(static_cast<Accumulator<T>>(x));
}

/// n elements: mostly normal numbers of many magnitudes, every 13th a special value for floats.
template <class T>
std::vector<T> mixed_elements(size_t n, uint64_t seed) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kSpecial[] = {0.0F,    -0.0F,    kInf,     -kInf, NAN,    1e-45F,
                                -1e-40F, 65504.0F, 65520.0F, 3e38F, -3e38F, 1.0F};
  std::vector<T> out(n);
  Philox random(seed);
  for (size_t i = 0; i < n; ++i) {
    const double mantissa = static_cast<double>(static_cast<int32_t>(random.next())) * 0x1p-31;
    const int exponent = static_cast<int>(random.next() % 16) - 8;
    out[i] = element<T>(std::ldexp(mantissa, exponent));
    if (!std::is_integral_v<T> && i % 13 == 5)
      out[i] = element<T>(kSpecial[random.next() % std::size(kSpecial)]);
  }
  return out;
}

/// Equal bits, or both NaN.
template <class T>
bool same_element(T a, T b) {
  if constexpr (!std::is_integral_v<T>) {
    if (widen(a) != widen(a)) return widen(b) != widen(b);
  }
  using Bits = std::array<std::byte, sizeof(T)>;
  return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b);
}

}  // namespace tern::test
