// What each reduction operator does to two elements: the definition that every kernel must match to the bit.
#pragma once

#include <type_traits>

#include "kernels/convert.h"
#include "runtime/base/element_types.h"

namespace tern {

/// Whether elements are stored shorter than they are computed with.
template <class T>
inline constexpr bool kIsShortFloat =
    std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16> || kIsFloat8<T>;

/// The type in which elements of type T are combined: fp32 for the short floats, else T itself.
template <class T>
using Accumulator = std::conditional_t<kIsShortFloat<T>, float, T>;

template <class T>
constexpr Accumulator<T> widen(T x) {
  if constexpr (kIsShortFloat<T>)
    return to_float(x);
  else
    return x;
}

template <class T>
constexpr T narrow(Accumulator<T> x) {
  if constexpr (std::is_same_v<T, Float16>)
    return to_float16(x);
  else if constexpr (std::is_same_v<T, Bfloat16>)
    return to_bfloat16(x);
  else if constexpr (kIsFloat8<T>)
    return to_float8<T>(x);
  else
    return x;
}

/// x / n, as kAvg divides: integers truncate towards zero.
template <class T>
constexpr T divided(T x, int n) {
  if constexpr (std::is_unsigned_v<T>)
    return static_cast<T>(x / static_cast<uint64_t>(n));
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(x / static_cast<int64_t>(n));
  else
    return narrow<T>(widen(x) / static_cast<Accumulator<T>>(n));
}

/// x * factor, as kPremulSum multiplies: in the element type (integers wrap), short floats in fp32.
template <class T>
constexpr T scaled(T x, double factor) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) *
                          static_cast<uint64_t>(static_cast<int64_t>(factor)));
  else
    return narrow<T>(widen(x) * static_cast<Accumulator<T>>(factor));
}

/// a op b. Integers wrap; min and max return the first operand that is NaN; kAvg adds (the division comes
/// last).
template <Op op, class T>
constexpr T apply(T a, T b) {
  if constexpr (op == Op::kMin || op == Op::kMax) {
    if constexpr (!std::is_integral_v<T>) {
      if (a != a) return a;  // NOLINT(misc-redundant-expression): NaN alone differs from itself
    }
    return (op == Op::kMin ? a < b : a > b) ? a : b;
  } else if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;  // overflow wraps instead of being undefined
    const uint64_t x = static_cast<Unsigned>(a);
    const uint64_t y = static_cast<Unsigned>(b);
    return static_cast<T>(op == Op::kProd ? x * y : x + y);
  } else {
    return op == Op::kProd ? a * b : a + b;
  }
}

}  // namespace tern
