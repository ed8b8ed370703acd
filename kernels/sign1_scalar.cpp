#include <array>

#include "kernels/block_scalar.h"
#include "kernels/sign1.h"

namespace tern {

uint16_t sign1_scale(std::span<float, kSignSums> sums, size_t n, float lift) {
  for (size_t apart = kSignSums / 2; apart > 0; apart /= 2) {
    for (size_t j = 0; j < apart; ++j) sums[j] += sums[j + apart];
  }
  if (n == 0) return 0;
  constexpr uint16_t kLargest = 0x7F7F;
  return std::min(to_bfloat16(sums[0] / static_cast<float>(n) * (1 / lift)).bits, kLargest);
}

namespace scalar {
namespace {

constexpr size_t kBlock = kSign1Shape.block;

/// Keeps the sum of a block within the range of fp32.
float lift_of(float absmax) {
  return absmax < 0x1p-60F ? 0x1p64F : absmax < 0x1p100F ? 1.0F : 0x1p-12F;
}

/// v of a block, and whether each granule of it has an element that is not zero.
struct Block {
  std::array<float, kBlock> v;
  std::array<uint8_t, kBlock / kSignGranule> used{};
  uint32_t absmax_bits = 0;
};

Block load(const BlockInput& in) {
  Block block;
  for (size_t i = 0; i < in.in.size(); ++i) {
    block.v[i] = in.residual != nullptr ? in.in[i] + in.residual[i] : in.in[i];
    const uint32_t bits = magnitude_bits(block.v[i]);
    block.absmax_bits = std::max(block.absmax_bits, bits);
    if (bits != 0) block.used[i / kSignGranule] = 1;
  }
  return block;
}

uint16_t scale_of(const Block& block, size_t n) {
  const float lift = lift_of(std::bit_cast<float>(block.absmax_bits));
  std::array<float, kSignSums> sums{};
  size_t n_used = 0;
  for (size_t i = 0; i < n; ++i) {
    sums[i % kSignSums] += std::abs(block.v[i]) * lift;
    n_used += block.used[i / kSignGranule];
  }
  return sign1_scale(sums, n_used, lift);
}

bool encode_block(const BlockInput& in, BlockPlanes out) {
  const size_t n = in.in.size();
  const size_t n_granules = (n + kSignGranule - 1) / kSignGranule;
  Block block = load(in);
  const bool finite = block.absmax_bits < kInfinityBits;
  if (!finite) block.used.fill(1);
  const uint16_t scale = finite ? scale_of(block, n) : kNanScale.bits;
  std::array<uint8_t, kBlock> negative{};
  for (size_t i = 0; i < n; ++i) negative[i] = finite && block.v[i] < 0 ? 1 : 0;
  std::memcpy(out.scales, &scale, sizeof(scale));
  pack_bits<uint8_t>({negative.data(), n}, 0, 1, out.codes);
  pack_bits<uint8_t>({block.used.data(), n_granules}, 0, 1, out.high);
  if (!finite || in.residual == nullptr) return finite;
  const float step = to_float(Bfloat16{scale});
  for (size_t i = 0; i < n; ++i) {
    const float sent = block.used[i / kSignGranule] == 0 ? 0.0F : negative[i] != 0 ? -step : step;
    in.residual[i] = block.v[i] - sent;
  }
  return true;
}

}  // namespace

BlockCounts sign1_encode(const BlockInput& run, BlockPlanes out) {
  BlockCounts counts;
  for (size_t begin = 0; begin < run.in.size(); begin += kBlock) {
    if (!encode_block(part_of(run, begin, kBlock), kSign1Shape.at(out, begin))) ++counts.n_non_finite;
  }
  return counts;
}

void sign1_decode(BlockView in, std::span<float> out, Decode how) {
  for (size_t i = 0; i < out.size(); ++i) {
    const float step = bf16_step(in.scales + i / kBlock * sizeof(Bfloat16));
    const bool used = bits_at(in.high, i / kSignGranule, 1) != 0;
    const float x = bits_at(in.codes, i, 1) != 0 ? -step : step;
    if (how == Decode::kSet) out[i] = used ? x : 0.0F;
    if (how == Decode::kAdd && used) out[i] += x;
  }
}

}  // namespace scalar
}  // namespace tern
