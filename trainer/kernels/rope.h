// Rotary position embedding in the rotate-half layout of Hugging Face.
#pragma once

#include "trainer/kernels/rows.h"

namespace tern::trainer {

/// For each head of each row, lane pairs (i, i + head_dim / 2) are turned by the angle of (position, i):
///   x[i], x[i + half] <- x[i] cos - x[i + half] sin,  x[i + half] cos + x[i] sin
/// A negative `direction` turns back, which is the backward pass. In place, on the calling thread.
/// Source: Su et al., RoFormer (2021).
template <class T>
struct Rotation {
  Rows<T> x;              ///< consecutive heads from the start of each row: queries, then keys
  int64_t first_row = 0;  ///< row r has position (first_row + r) % tokens
  int64_t tokens = 0;
  int64_t head_dim = 0;        ///< even; divides x.width
  const T* cosines = nullptr;  ///< (tokens, head_dim / 2)
  const T* sines = nullptr;    ///< (tokens, head_dim / 2)
  int direction = 1;
};

void rotate(const Rotation<float>& rotation);
void rotate(const Rotation<double>& rotation);

}  // namespace tern::trainer
