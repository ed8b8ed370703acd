#include <algorithm>
#include <cstring>

#include "kernels/block_scale.h"
#include "kernels/scalar.h"

namespace tern::scalar {
namespace {

/// Below this magnitude 1 / scale would overflow, so values and scale are first multiplied by 2^64, which is
/// exact.
constexpr float kTiny = 0x1p-100F;

struct Block {
  std::span<const float> in;
  float* residual;  // null: none
  std::byte* scale;
  std::byte* codes;
  float value(size_t i) const { return residual != nullptr ? in[i] + residual[i] : in[i]; }
};

bool encode_block(const Block& block) {
  uint32_t absmax_bits = 0;
  for (size_t i = 0; i < block.in.size(); ++i)
    absmax_bits = std::max(absmax_bits, magnitude_bits(block.value(i)));
  const bool finite = absmax_bits < kInfinityBits;
  const auto absmax = std::bit_cast<float>(absmax_bits);
  const Bfloat16 scale = finite ? scale_of(absmax) : kNanScale;
  std::memcpy(block.scale, &scale, sizeof(scale));
  if (!finite || absmax_bits == 0) std::memset(block.codes, 0, block.in.size());
  if (!finite) return false;
  const float lift = absmax < kTiny ? 0x1p64F : 1.0F;
  const float inverse = absmax_bits == 0 ? 0.0F : 1.0F / (to_float(scale) * lift);
  for (size_t i = 0; i < block.in.size(); ++i) {
    const float v = block.value(i);
    const int8_t code = nearest_code(v * lift * inverse);
    block.codes[i] = static_cast<std::byte>(code);
    if (block.residual != nullptr) block.residual[i] = v - static_cast<float>(code) * to_float(scale);
  }
  return true;
}

float scale_at(const std::byte* scales, size_t i) {
  Bfloat16 scale;
  std::memcpy(&scale, scales + (i / kQ8Block) * sizeof(scale), sizeof(scale));
  return to_float(scale);
}

}  // namespace

size_t q8_encode(std::span<const float> in, float* residual, Q8Planes out) {
  size_t n_non_finite = 0;
  for (size_t begin = 0; begin < in.size(); begin += kQ8Block) {
    const bool finite = encode_block({.in = in.subspan(begin, std::min(kQ8Block, in.size() - begin)),
                                      .residual = residual != nullptr ? residual + begin : nullptr,
                                      .scale = out.scales + begin / kQ8Block * sizeof(Bfloat16),
                                      .codes = out.codes + begin});
    if (!finite) ++n_non_finite;
  }
  return n_non_finite;
}

void q8_decode(Q8View in, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(static_cast<int8_t>(in.codes[i])) * scale_at(in.scales, i);
  }
}

void q8_decode_accumulate(Q8View in, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] += static_cast<float>(static_cast<int8_t>(in.codes[i])) * scale_at(in.scales, i);
  }
}

}  // namespace tern::scalar
