#include "trainer/kernels/embedding.h"

#include <algorithm>

namespace tern::trainer {

namespace {
constexpr int64_t kCacheLineElements = 16;
}

template <class T>
void embed(const T* table, std::span<const int32_t> tokens, int64_t width, T* x) {
  for (size_t row = 0; row < tokens.size(); ++row)
    std::copy_n(table + tokens[row] * width, width, x + static_cast<int64_t>(row) * width);
}

template <class T>
void embedding_backward(Team& team, const EmbeddingBackward<T>& args) {
  team.for_range(args.width, kCacheLineElements, [&](Range columns) {
    for (size_t row = 0; row < args.tokens.size(); ++row) {
      const T* dx = args.dx + static_cast<int64_t>(row) * args.width;
      T* d_table = args.d_table + args.tokens[row] * args.width;
      for (int64_t i = columns.begin; i < columns.end; ++i) d_table[i] += dx[i];
    }
  });
}

template void embed(const float*, std::span<const int32_t>, int64_t, float*);
template void embed(const double*, std::span<const int32_t>, int64_t, double*);
template void embedding_backward(Team&, const EmbeddingBackward<float>&);
template void embedding_backward(Team&, const EmbeddingBackward<double>&);

}  // namespace tern::trainer
