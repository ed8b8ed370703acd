// Matrix products, the only door to the BLAS libraries.
#pragma once

#include <cstdint>

#include "trainer/kernels/team.h"

namespace tern::trainer {

/// A row-major factor of a product; `transposed` uses it as its transpose. `stride`: elements from row to
/// row.
template <class T>
struct Factor {
  const T* data = nullptr;
  int64_t stride = 0;
  bool transposed = false;
};

/// c (m, n) = alpha * a (m, k) * b (k, n) + beta * c; c must not overlap a or b; c is not read when beta is
/// 0.
template <class T>
struct Product {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Factor<T> a;
  Factor<T> b;
  T* c = nullptr;
  int64_t c_stride = 0;
  T alpha = 1;
  T beta = 0;
};

/// Computes the product on the calling thread: fp32 by oneDNN, fp64 by OpenBLAS. The same bits every time.
/// Needs no set-up per shape and is fast down to blocks of 64 x 64 x 64.
void multiply(const Product<float>& product);
void multiply(const Product<double>& product);

/// The same, its rows (or columns, when there are few rows) shared out among the team.
template <class T>
void multiply(Team& team, const Product<T>& product);

extern template void multiply(Team&, const Product<float>&);
extern template void multiply(Team&, const Product<double>&);

}  // namespace tern::trainer
