// Products of a matrix with few vectors, for gradients as products of two thin matrices (PowerSGD; Vogels,
// Karimireddy & Jaggi, 2019).
//
// M is rows x cols, P rows x rank, both row after row; Q is rank x cols: vector k is one run of it. Sums are
// taken in one fixed order without fused multiply-add, so that every instruction set gives the same bits.
#pragma once

#include <cstddef>
#include <span>

namespace tern {

struct LowRankShape {
  size_t rows = 0;
  size_t cols = 0;
  size_t rank = 1;
};

/// P = M Q^T. p: rows * rank floats. Cost: 2 rows cols rank flops; M is read once.
void low_rank_project(const LowRankShape& shape, const float* m, const float* q, float* p);

/// Q = P^T M. q: rank * cols floats. Cost: 2 rows cols rank flops; M is read once.
void low_rank_back_project(const LowRankShape& shape, const float* m, const float* p, float* q);

struct LowRankFactors {
  const float* p = nullptr;
  const float* q = nullptr;
};

/// out = in - P Q, or P Q where `in` is null. in == out is allowed. Cost: 2 rows cols rank flops.
void low_rank_expand(const LowRankShape& shape, const LowRankFactors& factors, const float* in, float* out);

}  // namespace tern
