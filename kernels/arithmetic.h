// What each reduction operator does to two elements: the definition that every kernel must match to the bit.
#pragma once

#include <type_traits>

#include "kernels/convert.h"
#include "runtime/base/dtype.h"

namespace tern {

/// The type in which elements of type T are combined: fp32 for the 16-bit floats, else T itself.
template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>, float, T>;

template <class T>
constexpr Accumulator<T> widen(T x) {
  if constexpr (std::is_same_v<T, Accumulator<T>>)
    return x;
  else
    return to_float(x);
}

template <class T>
constexpr T narrow(Accumulator<T> x) {
  if constexpr (std::is_same_v<T, Float16>)
    return to_float16(x);
  else if constexpr (std::is_same_v<T, Bfloat16>)
    return to_bfloat16(x);
  else
    return x;
}

/// a op b. Integers wrap; min and max return the first operand that is NaN; kAvg adds (the division comes
/// last).
template <Op op, class T>
constexpr T apply(T a, T b) {
  if constexpr (op == Op::kMin || op == Op::kMax) {
    if (a != a) return a;
    return (op == Op::kMin ? a < b : a > b) ? a : b;
  } else if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<uint64_t>(a);  // unsigned: overflow wraps instead of being undefined
    const auto y = static_cast<uint64_t>(b);
    return static_cast<T>(op == Op::kProd ? x * y : x + y);
  } else {
    return op == Op::kProd ? a * b : a + b;
  }
}

}  // namespace tern
