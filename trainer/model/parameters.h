// All parameters of a model in one flat buffer: names, shapes and places, and their first values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/model/model_config.h"

namespace tern::trainer {

/// One parameter tensor: `rows` x `cols`, row-major, [out, in] as Hugging Face stores it; a norm is 1-D of
/// `cols`.
struct Parameter {
  enum class Kind : uint8_t {
    kEmbedding,
    kMatrix,          ///< a projection, or the untied head
    kResidualMatrix,  ///< a projection whose output is added to the residual stream (o_proj, down_proj)
    kNorm,            ///< one-dimensional weight of an RMSNorm
  };
  std::string name;  ///< e.g. "model.layers.3.self_attn.q_proj.weight"
  Kind kind = Kind::kMatrix;
  int layer = -1;  ///< -1 outside the layers
  int rows = 1;
  int cols = 0;
  int64_t offset = 0;  ///< of its first element in the flat buffer, a multiple of kParameterAlignment

  int64_t size() const { return static_cast<int64_t>(rows) * cols; }
  bool one_dimensional() const { return kind == Kind::kNorm; }
};

/// Elements; 64 bytes of fp32, so that every tensor starts on a cache line when the buffer does.
inline constexpr int64_t kParameterAlignment = 16;

/// Where each parameter lies in the flat buffer. A value; the same on every rank.
///
/// Index order: as the forward pass needs them (embedding; per layer input norm, q, k, v, o, post-attention
/// norm, gate, up, down; final norm; head unless tied), so backward finishes them in descending index order.
/// Place: all matrices (the embedding among them) in index order, then all one-dimensional parameters in
/// index order, so that buckets of matrices can be compressed while the few others ride dense in one run of
/// their own. Elements between tensors are padding: zero in parameters and gradients, and AdamW keeps them
/// zero, so sums over the whole buffer need not skip them.
class ParameterLayout {
 public:
  /// `config` must be valid.
  explicit ParameterLayout(const LlamaConfig& config);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const Parameter& operator[](int param_idx) const { return parameters_[static_cast<size_t>(param_idx)]; }
  int size() const { return static_cast<int>(parameters_.size()); }

  /// Elements of the flat buffer, padding included; a multiple of kParameterAlignment.
  int64_t n_elements() const { return n_elements_; }

  /// Index of the parameter with this name, or -1.
  int find(std::string_view name) const;

  /// First element of the one-dimensional parameters: [0, that) are matrices, [that, n_elements()) the
  /// others.
  int64_t one_dimensional_begin() const { return one_dimensional_begin_; }

  /// Index of the parameter that holds, or is followed by the padding that holds, flat element `element_idx`
  /// (to name the tensor at fault).
  int at_element(int64_t element_idx) const;

 private:
  std::vector<Parameter> parameters_;
  int64_t n_elements_ = 0;
  int64_t one_dimensional_begin_ = 0;
};

/// Writes first values into `out`, which stands for the flat elements [begin, begin + out.size()).
///
/// Norms are 1, padding 0; matrices and the embedding are normal with deviation config.initializer_range,
/// divided by sqrt(2 * layers) for o_proj and down_proj so that the residual stream does not grow with depth.
/// Each value is a function of (seed, parameter, element) alone: any rank may write any part, in any order.
/// Source: Philox4x32-10 (Salmon et al., SC 2011), Box & Muller (1958); scaling as GPT-2 (Radford et al.,
/// 2019).
template <class T>
void initialise(const LlamaConfig& config, const ParameterLayout& layout, uint64_t seed, int64_t begin,
                std::span<T> out);

extern template void initialise(const LlamaConfig&, const ParameterLayout&, uint64_t, int64_t,
                                std::span<float>);
extern template void initialise(const LlamaConfig&, const ParameterLayout&, uint64_t, int64_t,
                                std::span<double>);

}  // namespace tern::trainer
