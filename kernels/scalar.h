// Every kernel once more as plain loops: the definition of its bytes, which the vector kernels must match
// exactly. They also do the blocks that vectors are not worth it for (damaged, tiny or partial ones). Block
// formats are in kernels/block_scalar.h.
#pragma once

#include "kernels/bf16.h"
#include "kernels/reduce.h"
#include "kernels/topk.h"

namespace tern::scalar {

void reduce_to_many(const ReduceArgs& args);
void average(Dtype dtype, void* data, int n_ranks, size_t n);
void scale(const ScaleArgs& args);

bool bf16_encode(std::span<const float> in, std::byte* out);
void bf16_decode(const std::byte* in, std::span<float> out);
void bf16_decode_accumulate(const std::byte* in, std::span<float> out);

size_t topk_encode(std::span<const float> in, float* residual, int k, TopkPlanes out);
void topk_decode(TopkView in, int k, std::span<float> out);
void topk_decode_accumulate(TopkView in, int k, std::span<float> out);

}  // namespace tern::scalar
