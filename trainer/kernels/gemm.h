// Matrix products, the only door to oneDNN.
#pragma once

#include <cstdint>

#include "trainer/kernels/rows.h"
#include "trainer/kernels/team.h"

namespace tern::trainer {

/// A factor of a product: a matrix, or its transpose.
template <class T>
struct Factor {
  Factor(const Rows<const T>& rows, bool transpose = false)  // NOLINT(google-explicit-constructor)
      : matrix(rows), transposed(transpose) {}
  Factor(const Rows<T>& rows, bool transpose = false)  // NOLINT(google-explicit-constructor)
      : matrix(rows), transposed(transpose) {}

  Rows<const T> matrix;
  bool transposed;
};

/// c (m, n) = alpha * a (m, k) * b (k, n) + beta * c; no overlap of c with a or b; c is not read when beta is
/// 0.
template <class T>
struct Product {
  Factor<T> a;
  Factor<T> b;
  Rows<T> c;
  T alpha = 1;
  T beta = 0;

  int64_t k() const { return a.transposed ? a.matrix.rows : a.matrix.width; }
};

/// Computes the product on the calling thread; the same bits every time. fp32 by oneDNN, which needs no
/// set-up per shape here and is fast down to blocks of 64 x 64 x 64. fp64, which only checks of gradients
/// use, by plain loops: a BLAS library would start its own threads in every rank.
void multiply(const Product<float>& product);
void multiply(const Product<double>& product);

/// The same, its rows (or columns, when there are few rows) shared out among the team.
template <class T>
void multiply(Team& team, const Product<T>& product);

extern template void multiply(Team&, const Product<float>&);
extern template void multiply(Team&, const Product<double>&);

}  // namespace tern::trainer
