// The embedding look-up and its gradient.
#pragma once

#include <cstdint>
#include <span>

#include "trainer/kernels/rows.h"
#include "trainer/kernels/team.h"

namespace tern::trainer {

/// x[row] = table[tokens[row]]. table: (V, x.width), x: (tokens, width).
template <class T>
void embed(const T* table, std::span<const int32_t> tokens, const Rows<T>& x);

/// One gradient of a look-up: d_table[tokens[row]] += dx[row].
template <class T>
struct EmbeddingBackward {
  std::span<const int32_t> tokens;
  Rows<const T> dx;      // (tokens, width)
  T* d_table = nullptr;  // (V, width)
};

/// Each member of the team takes some columns, so rows are added in the same order whatever its size.
template <class T>
void embedding_backward(Team& team, const EmbeddingBackward<T>& args);

extern template void embed(const float*, std::span<const int32_t>, const Rows<float>&);
extern template void embed(const double*, std::span<const int32_t>, const Rows<double>&);
extern template void embedding_backward(Team&, const EmbeddingBackward<float>&);
extern template void embedding_backward(Team&, const EmbeddingBackward<double>&);

}  // namespace tern::trainer
