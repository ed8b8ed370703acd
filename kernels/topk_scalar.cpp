#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/block_scale.h"
#include "kernels/scalar.h"
#include "kernels/topk_block.h"

namespace tern::scalar {
namespace {

/// Indices of the k elements of largest magnitude, ascending; of equal magnitudes the lower index.
std::vector<uint16_t> select_largest(std::span<const float> v, size_t k) {
  std::vector<uint16_t> order(v.size());
  std::iota(order.begin(), order.end(), uint16_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](uint16_t a, uint16_t b) { return magnitude_bits(v[a]) > magnitude_bits(v[b]); });
  order.resize(k);
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace

size_t topk_encode(std::span<const float> in, float* residual, int k, TopkPlanes out) {
  size_t n_non_finite = 0;
  for (size_t begin = 0; begin < in.size(); begin += kTopkBlock) {
    const auto block = in.subspan(begin, std::min(kTopkBlock, in.size() - begin));
    const TopkBlock to = topk_block(out, k, begin, in.size());
    std::vector<float> v(block.begin(), block.end());
    if (residual != nullptr) {
      for (size_t i = 0; i < v.size(); ++i) v[i] += residual[begin + i];
    }
    if (std::any_of(v.begin(), v.end(), [](float x) { return magnitude_bits(x) >= kInfinityBits; })) {
      write_non_finite(to);
      ++n_non_finite;
      continue;
    }
    const std::vector<uint16_t> kept = select_largest(v, to.n_entries);
    write_entries(kept, v.data(), to);
    if (residual != nullptr) std::copy(v.begin(), v.end(), residual + begin);
  }
  return n_non_finite;
}

void topk_decode(TopkView in, int k, std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0F);
  scalar::topk_decode_accumulate(in, k, out);
}

void topk_decode_accumulate(TopkView in, int k, std::span<float> out) {
  for (size_t begin = 0; begin < out.size(); begin += kTopkBlock) {
    add_entries(topk_block(in, k, begin, out.size()),
                out.subspan(begin, std::min(kTopkBlock, out.size() - begin)));
  }
}

}  // namespace tern::scalar
