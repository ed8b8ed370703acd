// Test data whose reductions are exact in every element type and any order, and what they must give.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/arithmetic.h"
#include "runtime/base/dtype.h"

namespace tern::testing {

/// Small whole numbers: sums over 32 ranks stay below 2^8 (exact in bf16), products are powers of two up to
/// 2^5.
inline int element(int rank, size_t i, Op op) {
  const auto mixed = static_cast<uint32_t>((static_cast<size_t>(rank) * 2654435761U + i * 40503U) >> 7);
  if (op == Op::kProd) return mixed % 7 == 0 ? 2 : 1;
  if (op == Op::kAvg) return 0;  // see average_element()
  return static_cast<int>(mixed % 8);
}

inline void store(void* data, size_t i, Dtype dtype, double value) {
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    static_cast<T*>(data)[i] = narrow<T>(static_cast<Accumulator<T>>(value));
  });
}

inline double load(const void* data, size_t i, Dtype dtype) {
  return with_type(dtype, [&]<class T>(std::type_identity<T>) {
    return static_cast<double>(widen(static_cast<const T*>(data)[i]));
  });
}

/// Signed 8-bit types hold so few whole numbers that only two ranks add to each element, others zero.
inline double few(int rank, size_t i, Op op, int n_ranks) {
  const auto p = static_cast<size_t>(n_ranks);
  if (op == Op::kAvg) return n_ranks <= 8 ? 1 : 0;
  if (op != Op::kSum && op != Op::kPremulSum) return element(rank, i, op);
  const auto r = static_cast<size_t>(rank);
  return (r == i % p ? 1 : 0) + (r == (7 * i + 3) % p ? 1 : 0);
}

/// Rank's input at element i. Averages use multiples of the world size, so that they are whole.
inline double input(int rank, size_t i, Op op, int n_ranks, Dtype dtype = Dtype::kFloat32) {
  if (info(dtype).is_signed && size_of(dtype) == 1) return few(rank, i, op, n_ranks);
  if (op == Op::kAvg)
    return n_ranks <= 17 ? n_ranks * static_cast<int>((i + static_cast<size_t>(rank)) % 2) : 1;
  return op == Op::kPremulSum ? element(rank, i, op) % 4 : element(rank, i, op);
}

/// What a rank multiplies its input with for Op::kPremulSum.
inline double factor(int rank) {
  return rank % 3;
}

/// What all ranks' element i reduce to.
inline double expected(size_t i, Op op, int n_ranks, Dtype dtype = Dtype::kFloat32) {
  const auto term = [&](int rank) {
    return input(rank, i, op, n_ranks, dtype) * (op == Op::kPremulSum ? factor(rank) : 1);
  };
  double value = term(0);
  for (int rank = 1; rank < n_ranks; ++rank) {
    const double next = term(rank);
    if (op == Op::kSum || op == Op::kAvg || op == Op::kPremulSum) value += next;
    if (op == Op::kProd) value *= next;
    if (op == Op::kMin) value = std::min(value, next);
    if (op == Op::kMax) value = std::max(value, next);
  }
  return op == Op::kAvg ? value / n_ranks : value;
}

}  // namespace tern::testing
