// Causal attention over grouped key and value heads, in blocks that stay in cache.
#pragma once

#include <cstdint>

#include "trainer/kernels/rows.h"

namespace tern::trainer {

/// The layout of one sequence: row t of `qkv` holds `heads` query heads, then kv_heads keys, then kv_heads
/// values.
struct AttentionShape {
  int64_t tokens = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;

  int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
  int64_t out_width() const { return heads * head_dim; }
  int64_t group() const { return heads / kv_heads; }
};

/// out[t, h] = sum over s <= t of softmax(q[t, h] . k[s] / sqrt(head_dim))[s] * v[s], one key head per group.
///
/// Scores exist for one block of query rows at a time (`scratch`); what the backward pass keeps is only the
/// logarithm of each softmax denominator. Keys right of a block's diagonal are never touched.
/// Source: after Dao et al., FlashAttention (2022); rows of scores fit a cache here, so no online softmax is
/// needed.
template <class T>
struct AttentionForward {
  AttentionShape shape;
  Rows<const T> qkv;     // (T, qkv_width): one sequence
  Rows<T> out;           // (T, out_width)
  T* lse = nullptr;      // (heads, T): log of the sum of exp of the scaled scores
  T* scratch = nullptr;  // attention_scratch<T>(shape) elements
};

/// d_qkv (overwritten) from d_out; probabilities are computed again from qkv and lse.
template <class T>
struct AttentionBackward {
  AttentionShape shape;
  Rows<const T> qkv;       // (T, qkv_width)
  Rows<const T> out;       // (T, out_width)
  const T* lse = nullptr;  // (heads, T)
  Rows<const T> d_out;     // (T, out_width)
  Rows<T> d_qkv;           // (T, qkv_width)
  T* scratch = nullptr;    // attention_scratch<T>(shape) elements
};

/// Elements of working memory per thread.
template <class T>
int64_t attention_scratch(const AttentionShape& shape);

/// The query heads of one key head, on the calling thread. Key heads are independent of each other: they
/// write disjoint columns.
template <class T>
void attention_forward(const AttentionForward<T>& args, int64_t kv_head);
template <class T>
void attention_backward(const AttentionBackward<T>& args, int64_t kv_head);

extern template int64_t attention_scratch<float>(const AttentionShape&);
extern template int64_t attention_scratch<double>(const AttentionShape&);
extern template void attention_forward(const AttentionForward<float>&, int64_t);
extern template void attention_forward(const AttentionForward<double>&, int64_t);
extern template void attention_backward(const AttentionBackward<float>&, int64_t);
extern template void attention_backward(const AttentionBackward<double>&, int64_t);

}  // namespace tern::trainer
