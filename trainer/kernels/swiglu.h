// SwiGLU: silu(gate) * up.
#pragma once

#include "trainer/kernels/rows.h"

namespace tern::trainer {

/// out = gate * sigmoid(gate) * up; gate and up are the halves of each row of gate_up. Source: Shazeer
/// (2020).
template <class T>
struct SwigluForward {
  Rows<const T> gate_up;  // (rows, 2 * width)
  Rows<T> out;            // (rows, width)
};

/// gate_up becomes its own gradient, and `d_out`, the gradient of `out`, becomes `out` once more: the product
/// with the down projection's gradient needs it, and keeping it from the forward pass would cost more than
/// this.
template <class T>
struct SwigluBackward {
  Rows<T> gate_up;  // (rows, 2 * width)
  Rows<T> d_out;    // (rows, width)
};

/// On the calling thread.
void swiglu_forward(const SwigluForward<float>& args);
void swiglu_forward(const SwigluForward<double>& args);
void swiglu_backward(const SwigluBackward<float>& args);
void swiglu_backward(const SwigluBackward<double>& args);

}  // namespace tern::trainer
