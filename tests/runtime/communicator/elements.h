// Test data whose reductions are exact in every element type and any order, and what they must give.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/convert.h"
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
  switch (dtype) {
    case Dtype::kFloat32:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      break;
    case Dtype::kFloat64:
      static_cast<double*>(data)[i] = value;
      break;
    case Dtype::kFloat16:
      static_cast<Float16*>(data)[i] = to_float16(static_cast<float>(value));
      break;
    case Dtype::kBfloat16:
      static_cast<Bfloat16*>(data)[i] = to_bfloat16(static_cast<float>(value));
      break;
    case Dtype::kInt32:
      static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value);
      break;
    case Dtype::kInt64:
      static_cast<int64_t*>(data)[i] = static_cast<int64_t>(value);
      break;
    case Dtype::kUint8:
      static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(value);
      break;
  }
}

inline double load(const void* data, size_t i, Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32:
      return static_cast<const float*>(data)[i];
    case Dtype::kFloat64:
      return static_cast<const double*>(data)[i];
    case Dtype::kFloat16:
      return to_float(static_cast<const Float16*>(data)[i]);
    case Dtype::kBfloat16:
      return to_float(static_cast<const Bfloat16*>(data)[i]);
    case Dtype::kInt32:
      return static_cast<const int32_t*>(data)[i];
    case Dtype::kInt64:
      return static_cast<double>(static_cast<const int64_t*>(data)[i]);
    case Dtype::kUint8:
      return static_cast<const uint8_t*>(data)[i];
  }
  return 0;
}

/// Rank's input at element i. Averages use multiples of the world size, so that they are whole.
inline double input(int rank, size_t i, Op op, int n_ranks) {
  if (op == Op::kAvg)
    return n_ranks <= 17 ? n_ranks * static_cast<int>((i + static_cast<size_t>(rank)) % 2) : 1;
  return element(rank, i, op);
}

/// What all ranks' element i reduce to.
inline double expected(size_t i, Op op, int n_ranks) {
  double value = input(0, i, op, n_ranks);
  for (int rank = 1; rank < n_ranks; ++rank) {
    const double next = input(rank, i, op, n_ranks);
    if (op == Op::kSum || op == Op::kAvg) value += next;
    if (op == Op::kProd) value *= next;
    if (op == Op::kMin) value = std::min(value, next);
    if (op == Op::kMax) value = std::max(value, next);
  }
  return op == Op::kAvg ? value / n_ranks : value;
}

}  // namespace tern::testing
