#include "trainer/kernels/embedding.h"

#include <algorithm>

namespace tern::trainer {

namespace {
constexpr int64_t kCacheLineElements = 16;
}

template <class T>
void embed(const T* table, std::span<const int32_t> tokens, const Rows<T>& x) {
  for (int64_t row = 0; row < x.rows; ++row)
    std::copy_n(table + tokens[static_cast<size_t>(row)] * x.width, x.width, x.row(row));
}

template <class T>
void embedding_backward(Team& team, const EmbeddingBackward<T>& args) {
  team.for_range(args.dx.width, kCacheLineElements, [&](Range columns) {
    for (int64_t row = 0; row < args.dx.rows; ++row) {
      const T* dx = args.dx.row(row);
      T* d_table = args.d_table + args.tokens[static_cast<size_t>(row)] * args.dx.width;
      for (int64_t i = columns.begin; i < columns.end; ++i) d_table[i] += dx[i];
    }
  });
}

template void embed(const float*, std::span<const int32_t>, const Rows<float>&);
template void embed(const double*, std::span<const int32_t>, const Rows<double>&);
template void embedding_backward(Team&, const EmbeddingBackward<float>&);
template void embedding_backward(Team&, const EmbeddingBackward<double>&);

}  // namespace tern::trainer
