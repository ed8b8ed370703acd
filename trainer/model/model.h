// A Llama-style dense transformer with explicit forward and backward passes on the CPU.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "runtime/base/status.h"
#include "trainer/kernels/team.h"
#include "trainer/model/model_config.h"
#include "trainer/model/parameters.h"

namespace tern::trainer {

/// A micro-batch: `batch` sequences of `tokens` tokens each.
struct Shape {
  int batch = 1;
  int tokens = 1;
  int64_t rows() const { return static_cast<int64_t>(batch) * tokens; }
};

/// Where the time of the passes since the last reset went, in seconds of the calling thread.
struct PassTimes {
  double gemm = 0;        ///< projections and head, forward and backward
  double attention = 0;   ///< scores, softmax, weighted sums and rotary embedding
  double norm = 0;        ///< RMSNorm and residual additions
  double activation = 0;  ///< SwiGLU
  double loss = 0;        ///< cross-entropy
  double embedding = 0;
};

template <class T>
struct ModelState;

/// The model for one micro-batch shape: its code, its activations and its threads. Parameters and gradients
/// are the caller's flat buffers (see ParameterLayout), so they can be sharded, sent and saved without
/// copies.
///
/// T is float for training, double for checking gradients.
/// Threads: one call at a time per model; callbacks run on the calling thread. The other threads sleep
/// between calls. Determinism: the same inputs give the same bits on every run with the same thread count.
/// Cost: forward + backward perform flops_per_token() * rows flops, attention about half of what that rule
/// counts. Sources: Touvron et al., LLaMA (2023); Zhang & Sennrich, RMSNorm (2019); Su et al., RoPE (2021);
///          Shazeer, SwiGLU (2020); Ainslie et al., GQA (2023); Dao et al., FlashAttention (2022).
template <class T>
class Model {
 public:
  /// `threads` counts the caller. Allocates activation_bytes().
  /// Errors: kInvalidArgument (config invalid, shape or threads < 1, tokens > max_position), kOutOfMemory.
  static Result<Model> create(const LlamaConfig& config, Shape shape, int threads);

  /// Bytes that a model of this shape allocates, for predictions before anything is created.
  static int64_t activation_bytes(const LlamaConfig& config, Shape shape, int threads);

  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const LlamaConfig& config() const;
  const ParameterLayout& layout() const;
  Shape shape() const;

  /// Sum (not mean) of the cross-entropy, in nats, over rows whose target is not negative; NaN or infinite
  /// when the computation was. Keeps what backward() needs until the next forward().
  ///
  /// params: layout().n_elements(); tokens, targets: (B, T), tokens in [0, vocab), targets < vocab.
  double forward(std::span<const T> params, std::span<const int32_t> tokens,
                 std::span<const int32_t> targets);

  /// grads += loss_scale * d(sum of losses)/d(params), for the last forward(), with the same params. Once per
  /// forward.
  ///
  /// on_grad_ready(param_idx) is called on the calling thread as soon as nothing of this pass will touch that
  /// parameter's gradient any more, exactly once for each, in descending index order: head (or final norm
  /// when tied), layers from last to first, embedding last. May be empty.
  void backward(std::span<const T> params, std::span<T> grads, T loss_scale,
                const std::function<void(int)>& on_grad_ready);

  /// Logits (V) of row `row` (= sequence * tokens + position) for these tokens, without a loss; no backward()
  /// after.
  void logits(std::span<const T> params, std::span<const int32_t> tokens, int64_t row, std::span<T> out);

  /// The model's threads, for the optimiser step between passes.
  Team& team();

  const PassTimes& times() const;
  void reset_times();

 private:
  explicit Model(std::unique_ptr<ModelState<T>> state);
  std::unique_ptr<ModelState<T>> state_;
};

extern template class Model<float>;
extern template class Model<double>;

}  // namespace tern::trainer
