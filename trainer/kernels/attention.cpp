#include "trainer/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "trainer/kernels/causal_softmax.h"
#include "trainer/kernels/gemm.h"

namespace tern::trainer {

namespace {

// Query rows per block: as many as keep a block of scores within half of a small second-level cache. 64
// wastes least right of the diagonal while its products still run near peak (bench/model_perf, AVX-512 with 2
// MiB of L2).
constexpr int64_t kMaxBlockRows = 64;
constexpr int64_t kMinBlockRows = 16;
constexpr int64_t kBlockScores = 1 << 16;

int64_t block_rows(const AttentionShape& shape) {
  return std::clamp(kBlockScores / shape.tokens / kMinBlockRows * kMinBlockRows, kMinBlockRows,
                    kMaxBlockRows);
}

/// The blocks of query rows of one sequence, in order.
template <class Body>
void for_blocks(const AttentionShape& shape, const Body& body) {
  const int64_t rows = block_rows(shape);
  for (int64_t first = 0; first < shape.tokens; first += rows)
    body(CausalBlock{first, std::min(rows, shape.tokens - first), shape.tokens});
}

/// Where head `head` and its key head lie within a row of qkv.
struct Columns {
  int64_t query, key, value;
};
Columns columns_of(const AttentionShape& shape, int64_t head) {
  const int64_t kv_head = head / shape.group();
  return {head * shape.head_dim, (shape.heads + kv_head) * shape.head_dim,
          (shape.heads + shape.kv_heads + kv_head) * shape.head_dim};
}

/// Working memory of one thread: two blocks of scores and three values per row.
template <class T>
struct Scratch {
  T *scores, *d_scores, *inverse_sum, *dot;
  Scratch(const AttentionShape& shape, T* memory) : scores(memory) {
    d_scores = scores + block_rows(shape) * shape.tokens;
    inverse_sum = d_scores + block_rows(shape) * shape.tokens;
    dot = inverse_sum + block_rows(shape);
  }
};

template <class T>
T score_scale(const AttentionShape& shape) {
  return static_cast<T>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)));
}

/// scores = q k^T / sqrt(head_dim) for one block of query rows.
template <class T>
void scaled_scores(const AttentionShape& shape, const T* qkv, const Columns& at, const CausalBlock& block,
                   T* scores) {
  const int64_t width = shape.qkv_width();
  multiply(Product<T>{.m = block.rows,
                      .n = block.columns(),
                      .k = shape.head_dim,
                      .a = {qkv + block.first_row * width + at.query, width},
                      .b = {qkv + at.key, width, true},
                      .c = scores,
                      .c_stride = block.stride,
                      .alpha = score_scale<T>(shape)});
}

template <class T>
void forward_head(const AttentionForward<T>& a, int64_t head) {
  const AttentionShape& shape = a.shape;
  const Columns at = columns_of(shape, head);
  const Scratch<T> scratch(shape, a.scratch);
  for_blocks(shape, [&](const CausalBlock& block) {
    scaled_scores(shape, a.qkv, at, block, scratch.scores);
    causal_softmax(block, scratch.scores, scratch.inverse_sum, a.lse + head * shape.tokens + block.first_row);
    T* out = a.out + block.first_row * shape.out_width() + head * shape.head_dim;
    multiply(Product<T>{.m = block.rows,
                        .n = shape.head_dim,
                        .k = block.columns(),
                        .a = {scratch.scores, block.stride},
                        .b = {a.qkv + at.value, shape.qkv_width()},
                        .c = out,
                        .c_stride = shape.out_width()});
    scale_rows(Rows<T>{out, block.rows, shape.head_dim, shape.out_width()}, scratch.inverse_sum);
  });
}

template <class T>
void probabilities_and_gradient(const AttentionBackward<T>& a, int64_t head, const CausalBlock& block) {
  const AttentionShape& shape = a.shape;
  const Columns at = columns_of(shape, head);
  const Scratch<T> scratch(shape, a.scratch);
  const int64_t out_at = block.first_row * shape.out_width() + head * shape.head_dim;
  scaled_scores(shape, a.qkv, at, block, scratch.scores);
  multiply(Product<T>{.m = block.rows,
                      .n = block.columns(),
                      .k = shape.head_dim,
                      .a = {a.d_out + out_at, shape.out_width()},
                      .b = {a.qkv + at.value, shape.qkv_width(), true},
                      .c = scratch.d_scores,
                      .c_stride = block.stride});
  dot_rows(Rows<const T>{a.out + out_at, block.rows, shape.head_dim, shape.out_width()}, a.d_out + out_at,
           scratch.dot);
  causal_softmax_backward({.block = block,
                           .lse = a.lse + head * shape.tokens + block.first_row,
                           .dot = scratch.dot,
                           .scores = scratch.scores,
                           .d_scores = scratch.d_scores});
}

/// dv += p^T d_out, dk += ds^T q, dq = ds k.
template <class T>
void spread_gradient(const AttentionBackward<T>& a, int64_t head, const CausalBlock& block) {
  const AttentionShape& shape = a.shape;
  const Columns at = columns_of(shape, head);
  const Scratch<T> scratch(shape, a.scratch);
  const int64_t width = shape.qkv_width();
  const int64_t query_at = block.first_row * width + at.query;
  Product<T> product{
      .m = block.columns(),
      .n = shape.head_dim,
      .k = block.rows,
      .a = {scratch.scores, block.stride, true},
      .b = {a.d_out + block.first_row * shape.out_width() + head * shape.head_dim, shape.out_width()},
      .c = a.d_qkv + at.value,
      .c_stride = width,
      .beta = 1};
  multiply(product);
  product.a.data = scratch.d_scores;
  product.b = {a.qkv + query_at, width};
  product.c = a.d_qkv + at.key;
  product.alpha = score_scale<T>(shape);
  multiply(product);
  multiply(Product<T>{.m = block.rows,
                      .n = shape.head_dim,
                      .k = block.columns(),
                      .a = {scratch.d_scores, block.stride},
                      .b = {a.qkv + at.key, width},
                      .c = a.d_qkv + query_at,
                      .c_stride = width,
                      .alpha = score_scale<T>(shape)});
}

template <class T>
void clear_columns(const AttentionShape& shape, T* d_qkv, int64_t column) {
  for (int64_t t = 0; t < shape.tokens; ++t)
    std::fill_n(d_qkv + t * shape.qkv_width() + column, shape.head_dim, T{0});
}

}  // namespace

int64_t attention_scratch(const AttentionShape& shape) {
  // rounded to whole cache lines, so that two threads never share one
  return (2 * block_rows(shape) * (shape.tokens + 1) + 31) / 32 * 32;
}

template <class T>
void attention_forward(const AttentionForward<T>& args, int64_t kv_head) {
  const int64_t group = args.shape.group();
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) forward_head(args, head);
}

template <class T>
void attention_backward(const AttentionBackward<T>& args, int64_t kv_head) {
  const AttentionShape& shape = args.shape;
  const int64_t group = shape.group();
  const Columns at = columns_of(shape, kv_head * group);
  clear_columns(shape, args.d_qkv, at.key);
  clear_columns(shape, args.d_qkv, at.value);
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for_blocks(shape, [&](const CausalBlock& block) {
      probabilities_and_gradient(args, head, block);
      spread_gradient(args, head, block);
    });
  }
}

template void attention_forward(const AttentionForward<float>&, int64_t);
template void attention_forward(const AttentionForward<double>&, int64_t);
template void attention_backward(const AttentionBackward<float>&, int64_t);
template void attention_backward(const AttentionBackward<double>&, int64_t);

}  // namespace tern::trainer
