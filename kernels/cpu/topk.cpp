#include "kernels/topk.h"

#include "kernels/scalar.h"

namespace tern {

size_t topk_encode(std::span<const float> in, float* residual, int k, TopkPlanes out) {
  return scalar::topk_encode(in, residual, k, out);
}
void topk_decode(TopkView in, int k, std::span<float> out) {
  scalar::topk_decode(in, k, out);
}
void topk_decode_accumulate(TopkView in, int k, std::span<float> out) {
  scalar::topk_decode_accumulate(in, k, out);
}

}  // namespace tern
