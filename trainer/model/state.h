// What a Model owns: activations, scratch, tables and threads. Private to this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/clock.h"
#include "trainer/kernels/attention.h"
#include "trainer/kernels/buffer.h"
#include "trainer/kernels/rope.h"
#include "trainer/kernels/team.h"
#include "trainer/model/model.h"
#include "trainer/model/projection.h"
#include "trainer/model/rope_table.h"

namespace tern::trainer {

/// Input norm, q, k, v, o, post-attention norm, gate, up, down.
inline constexpr int kParametersPerLayer = 9;

/// Which parameters make up one layer.
struct LayerWeights {
  int first_param;  ///< input norm; the others follow in layout order
  int64_t input_norm, post_attention_norm;
  Projection qkv, o, gate_up, down;

  LayerWeights(const ParameterLayout& layout, int layer);
};

/// What the forward pass of one layer keeps. The outputs of the norms and of SwiGLU are computed again from
/// these: cheaper than writing and reading them.
template <class T>
struct LayerActivations {
  Rows<T> x;                // (N, C) residual stream before the layer; N = B * T
  T* input_rstd = nullptr;  // (N)
  Rows<T> qkv;              // (N, (H + 2 KV) D) after rotary embedding
  T* lse = nullptr;         // (B, H, T)
  Rows<T> attention;        // (N, H D)
  Rows<T> x_mid;            // (N, C) after the attention block
  T* post_rstd = nullptr;   // (N)
  Rows<T> gate_up;          // (N, 2 F), after its backward step the gradient
};

/// Memory that one layer after the other uses.
template <class T>
struct SharedScratch {
  Rows<T> x_final;             // (N, C) after the last layer
  T* final_rstd = nullptr;     // (N)
  Rows<T> normed;              // (N, C) output of the norm at hand
  Rows<T> activated;           // (N, F) output of SwiGLU, or its gradient
  Rows<T> d_x;                 // (N, C) gradient of the residual stream after a layer, then before it
  Rows<T> d_mid;               // (N, C) the same between attention and MLP
  Rows<T> d_normed;            // (N, C) gradient of a norm's output
  Rows<T> d_attention;         // (N, H D)
  Rows<T> d_qkv;               // (N, (H + 2 KV) D)
  Rows<T> logits;              // (N, V), after forward() their gradient
  T* attention = nullptr;      // (threads, attention_scratch)
  T* d_norm_weight = nullptr;  // (threads, C) partial sums
};

/// Adds the time since the last call to one part; does nothing on members that do not keep time.
class Lap {
 public:
  explicit Lap(PassTimes* times) : times_(times) {
    if (times_ != nullptr) last_ = Clock::now();
  }
  void add(double PassTimes::*part) {
    if (times_ == nullptr) return;
    const auto now = Clock::now();
    times_->*part += Seconds(now - last_).count();
    last_ = now;
  }

 private:
  PassTimes* times_;
  Clock::time_point last_;
};

template <class T>
struct ModelState {
  LlamaConfig config;
  Shape shape;
  ParameterLayout layout;
  std::vector<LayerWeights> weights;
  int64_t final_norm;
  Projection head;
  RopeTable<T> rope;
  Team team;
  Buffer<T> memory;
  std::vector<LayerActivations<T>> layers;
  SharedScratch<T> scratch;
  std::vector<double> row_losses;  // (N)
  std::vector<int32_t> tokens;     // of the last forward(), for the embedding's gradient
  PassTimes times;

  ModelState(const LlamaConfig& config, Shape shape, int threads, Buffer<T> memory);

  int64_t rows() const { return shape.rows(); }
  AttentionShape attention_shape() const {
    return {shape.tokens, config.heads, config.kv_heads, config.head_dim};
  }

  /// Rotary embedding of the queries and keys of some rows of qkv, or back.
  Rotation<T> rotation(const Rows<T>& qkv, Range r, int direction) const {
    return {.x = qkv.part(r).columns(0, config.query_width() + config.kv_width()),
            .first_row = r.begin,
            .tokens = shape.tokens,
            .head_dim = config.head_dim,
            .cosines = rope.cosines.data(),
            .sines = rope.sines.data(),
            .direction = direction};
  }

  /// Attention's scratch of one member.
  T* attention_scratch_of(int member) const {
    return scratch.attention + member * attention_scratch<T>(attention_shape());
  }

  /// A member's partial sum of the gradient of the norm at hand.
  T* norm_partial(int member) const {
    return scratch.d_norm_weight + static_cast<int64_t>(member) * config.hidden;
  }

  /// body(rows, member, lap) for chunks of the rows, each chunk once, in row order within a member.
  template <class Body>
  void for_rows(const Body& body) {
    team.run([&](int member) {
      Lap lap(member == 0 ? &times : nullptr);
      const Range mine = part_of(rows(), member, team.size());
      const int64_t n_chunks = (mine.size() + kChunkRows - 1) / kChunkRows;
      for (int64_t chunk = 0; chunk < n_chunks; ++chunk) {
        const Range part = part_of(mine.size(), chunk, n_chunks);
        body(Range{mine.begin + part.begin, mine.begin + part.end}, member, lap);
      }
    });
  }

  /// body(rows of a sequence, kv_head, member): attention's independent pieces, each once.
  template <class Body>
  void for_key_heads(const Body& body) {
    const int64_t n = static_cast<int64_t>(shape.batch) * config.kv_heads;
    team.run([&](int member) {
      const Range mine = part_of(n, member, team.size());
      Lap lap(member == 0 ? &times : nullptr);
      for (int64_t i = mine.begin; i < mine.end; ++i) {
        const int64_t first_row = i / config.kv_heads * shape.tokens;
        body(Range{first_row, first_row + shape.tokens}, i % config.kv_heads, member);
      }
      lap.add(&PassTimes::attention);
    });
  }

  // Fewer rows per product cost its set-up and packing more often, more gain nothing: 256, 512 and 1024 rows
  // gave 82, 82 and 85 % of peak in bench/model_perf (one core, AVX-512, 2 MiB of L2).
  static constexpr int64_t kChunkRows = 1024;
};

/// Fills the activations and scratch.logits from `tokens`.
template <class T>
void forward_to_logits(ModelState<T>& state, const T* params, std::span<const int32_t> tokens);

/// Turns scratch.logits into their gradient and returns the sum of the losses.
template <class T>
double sum_losses(ModelState<T>& state, std::span<const int32_t> targets);

/// Where the gradients go, and who hears of them.
template <class T>
struct GradientSink {
  T* grads = nullptr;  // the flat buffer
  T loss_scale = 1;
  const std::function<void(int)>& on_ready;

  void ready(int param_idx) const {
    if (on_ready) on_ready(param_idx);
  }
};

/// Adds the gradients of the last forward pass; consumes its activations.
template <class T>
void backward_from_logits(ModelState<T>& state, const T* params, const GradientSink<T>& sink);

}  // namespace tern::trainer
