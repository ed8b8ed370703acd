#include "trainer/kernels/attention.h"

#include <algorithm>
#include <cmath>

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
template <class T, class Body>
void for_blocks(const AttentionShape& shape, const Body& body) {
  const int64_t rows = block_rows(shape);
  for (int64_t first = 0; first < shape.tokens; first += rows)
    body(CausalBlock{first, std::min(rows, shape.tokens - first), row_stride<T>(shape.tokens)});
}

/// The columns of one head, and of its key head, within qkv or its gradient.
template <class T>
struct HeadOf {
  Rows<T> query, key, value;
  HeadOf(const AttentionShape& s, const Rows<T>& qkv, int64_t head)
      : query(qkv.columns(head * s.head_dim, s.head_dim)),
        key(qkv.columns((s.heads + head / s.group()) * s.head_dim, s.head_dim)),
        value(qkv.columns((s.heads + s.kv_heads + head / s.group()) * s.head_dim, s.head_dim)) {}
};

/// The query rows of a block, and the key rows that they look at.
Range queries(const CausalBlock& block) {
  return {block.first_row, block.first_row + block.rows};
}
Range keys(const CausalBlock& block) {
  return {0, block.columns()};
}

/// Working memory of one thread: two blocks of scores and two values per row.
template <class T>
struct Scratch {
  T *score_data, *d_score_data, *inverse_sum, *dot;
  Scratch(const AttentionShape& shape, T* memory)
      : score_data(memory),
        d_score_data(score_data + block_rows(shape) * row_stride<T>(shape.tokens)),
        inverse_sum(d_score_data + block_rows(shape) * row_stride<T>(shape.tokens)),
        dot(inverse_sum + block_rows(shape)) {}
  Rows<T> scores(const CausalBlock& b) const { return {score_data, b.rows, b.columns(), b.stride}; }
  Rows<T> d_scores(const CausalBlock& b) const { return {d_score_data, b.rows, b.columns(), b.stride}; }
};

template <class T>
T score_scale(const AttentionShape& shape) {
  return static_cast<T>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)));
}

template <class T>
void forward_block(const AttentionForward<T>& a, int64_t head, const CausalBlock& block) {
  const AttentionShape& shape = a.shape;
  const HeadOf<const T> in(shape, a.qkv, head);
  const Scratch<T> scratch(shape, a.scratch);
  const Rows<T> scores = scratch.scores(block);
  const Rows<T> out = a.out.columns(head * shape.head_dim, shape.head_dim).part(queries(block));
  multiply(Product<T>{.a = in.query.part(queries(block)),
                      .b = {in.key.part(keys(block)), true},
                      .c = scores,
                      .alpha = score_scale<T>(shape)});
  causal_softmax(block, scores.data, scratch.inverse_sum, a.lse + head * shape.tokens + block.first_row);
  multiply(Product<T>{.a = scores, .b = in.value.part(keys(block)), .c = out});
  scale_rows(out, scratch.inverse_sum);
}

/// Probabilities into scratch.scores, gradient of the scores into scratch.d_scores.
template <class T>
void probabilities_and_gradient(const AttentionBackward<T>& a, int64_t head, const CausalBlock& block) {
  const AttentionShape& shape = a.shape;
  const HeadOf<const T> in(shape, a.qkv, head);
  const Scratch<T> scratch(shape, a.scratch);
  const Rows<const T> out = a.out.columns(head * shape.head_dim, shape.head_dim).part(queries(block));
  const Rows<const T> d_out = a.d_out.columns(head * shape.head_dim, shape.head_dim).part(queries(block));
  multiply(Product<T>{.a = in.query.part(queries(block)),
                      .b = {in.key.part(keys(block)), true},
                      .c = scratch.scores(block),
                      .alpha = score_scale<T>(shape)});
  multiply(Product<T>{.a = d_out, .b = {in.value.part(keys(block)), true}, .c = scratch.d_scores(block)});
  dot_rows(out, d_out, scratch.dot);
  causal_softmax_backward(CausalSoftmaxBackward<T>{.block = block,
                                                   .lse = a.lse + head * shape.tokens + block.first_row,
                                                   .dot = scratch.dot,
                                                   .scores = scratch.score_data,
                                                   .d_scores = scratch.d_score_data});
}

/// dv += p^T d_out, dk += ds^T q, dq = ds k.
template <class T>
void spread_gradient(const AttentionBackward<T>& a, int64_t head, const CausalBlock& block) {
  const AttentionShape& shape = a.shape;
  const HeadOf<const T> in(shape, a.qkv, head);
  const HeadOf<T> gradient(shape, a.d_qkv, head);
  const Scratch<T> scratch(shape, a.scratch);
  const Rows<const T> d_out = a.d_out.columns(head * shape.head_dim, shape.head_dim).part(queries(block));
  const T scale = score_scale<T>(shape);
  multiply(Product<T>{
      .a = {scratch.scores(block), true}, .b = d_out, .c = gradient.value.part(keys(block)), .beta = 1});
  multiply(Product<T>{.a = {scratch.d_scores(block), true},
                      .b = in.query.part(queries(block)),
                      .c = gradient.key.part(keys(block)),
                      .alpha = scale,
                      .beta = 1});
  multiply(Product<T>{.a = scratch.d_scores(block),
                      .b = in.key.part(keys(block)),
                      .c = gradient.query.part(queries(block)),
                      .alpha = scale});
}

template <class T>
void clear(const Rows<T>& x) {
  for (int64_t i = 0; i < x.rows; ++i) std::fill_n(x.row(i), x.width, T{0});
}

}  // namespace

template <class T>
int64_t attention_scratch(const AttentionShape& shape) {
  // rounded to whole cache lines, so that two threads never share one
  return (2 * block_rows(shape) * (row_stride<T>(shape.tokens) + 1) + 31) / 32 * 32;
}

template <class T>
void attention_forward(const AttentionForward<T>& args, int64_t kv_head) {
  const int64_t group = args.shape.group();
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head)
    for_blocks<T>(args.shape, [&](const CausalBlock& block) { forward_block(args, head, block); });
}

template <class T>
void attention_backward(const AttentionBackward<T>& args, int64_t kv_head) {
  const int64_t group = args.shape.group();
  const HeadOf<T> gradient(args.shape, args.d_qkv, kv_head * group);
  clear(gradient.key);
  clear(gradient.value);
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for_blocks<T>(args.shape, [&](const CausalBlock& block) {
      probabilities_and_gradient(args, head, block);
      spread_gradient(args, head, block);
    });
  }
}

template int64_t attention_scratch<float>(const AttentionShape&);
template int64_t attention_scratch<double>(const AttentionShape&);
template void attention_forward(const AttentionForward<float>&, int64_t);
template void attention_forward(const AttentionForward<double>&, int64_t);
template void attention_backward(const AttentionBackward<float>&, int64_t);
template void attention_backward(const AttentionBackward<double>&, int64_t);

}  // namespace tern::trainer
