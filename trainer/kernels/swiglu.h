// SwiGLU: silu(gate) * up.
#pragma once

#include <cstdint>

namespace tern::trainer {

/// out = gate * sigmoid(gate) * up; gate and up are the halves of each row of gate_up. Source: Shazeer
/// (2020).
template <class T>
struct SwigluForward {
  int64_t rows = 0;
  int64_t width = 0;
  const T* gate_up = nullptr;  // (rows, 2 * width)
  T* out = nullptr;            // (rows, width)
};

/// gate_up becomes its own gradient, and `d_out`, the gradient of `out`, becomes `out` once more: the product
/// with the down projection's gradient needs it, and keeping it from the forward pass would cost more than
/// this.
template <class T>
struct SwigluBackward {
  int64_t rows = 0;
  int64_t width = 0;
  T* gate_up = nullptr;  // (rows, 2 * width)
  T* d_out = nullptr;    // (rows, width)
};

/// On the calling thread.
void swiglu_forward(const SwigluForward<float>& args);
void swiglu_forward(const SwigluForward<double>& args);
void swiglu_backward(const SwigluBackward<float>& args);
void swiglu_backward(const SwigluBackward<double>& args);

}  // namespace tern::trainer
