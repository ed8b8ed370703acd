#include <array>

#include "kernels/block_scalar.h"
#include "kernels/q4h.h"

namespace tern::scalar {
namespace {

constexpr size_t kBlock = Q4h::kShape.block;
using Values = std::array<float, kBlock>;
using Codes = std::array<uint8_t, kBlock>;

/// Of the block whose first element is number `first`: one word of signs per 32 elements.
PhiloxBlock signs_of(const ElementRandom& random) {
  return Philox(kElementSeed, random.step).block(random.first | uint64_t{1} << 63);
}

void flip(const PhiloxBlock& signs, Values& y) {
  for (size_t i = 0; i < kBlock; ++i)
    if ((signs[i / kRotation] >> i % kRotation & 1) != 0) y[i] = -y[i];
}

void transform(Values& y) {
  for (size_t distance = 1; distance < kRotation; distance *= 2) {
    for (size_t i = 0; i < kBlock; ++i) {
      if ((i & distance) != 0) continue;
      const float a = y[i];
      const float b = y[i + distance];
      y[i] = a + b;
      y[i + distance] = a - b;
    }
  }
}

Values decoded(const Codes& codes, float step, const PhiloxBlock& signs) {
  Values y;
  for (size_t i = 0; i < kBlock; ++i) y[i] = Q4h::value(codes[i]);
  transform(y);
  for (float& x : y) x *= step;
  flip(signs, y);
  return y;
}

constexpr size_t coded(size_t n) {
  return (n + kRotation - 1) / kRotation * kRotation;
}

bool is_finite(const Values& v) {
  return std::all_of(v.begin(), v.end(), [](float x) { return magnitude_bits(x) < kInfinityBits; });
}

float absmax_of(const Values& v) {
  uint32_t bits = 0;
  for (const float x : v) bits = std::max(bits, magnitude_bits(x));
  return std::bit_cast<float>(bits);
}

Codes codes_of(const Values& y, float factor, const BlockInput& block) {
  const Philox random(kElementSeed, block.random.step);
  Codes codes;
  for (size_t i = 0; i < kBlock; ++i) {
    codes[i] = block.stochastic
                   ? Q4h::code(y[i] * factor, stochastic_offset(random.at(block.random.first + i)))
                   : Q4h::code(y[i] * factor);
  }
  return codes;
}

bool encode_block(const BlockInput& block, BlockPlanes out) {
  const size_t n = block.in.size();
  Values v{};
  for (size_t i = 0; i < n; ++i)
    v[i] = block.residual != nullptr ? block.in[i] + block.residual[i] : block.in[i];
  if (!is_finite(v)) {
    std::memcpy(out.scales, &Q4h::kNan, sizeof(Q4h::kNan));
    std::memset(out.codes, 0, coded(n) / 2);
    return false;
  }
  const float lift = q4h_lift(absmax_of(v));
  const PhiloxBlock signs = signs_of(block.random);
  Values y;
  for (size_t i = 0; i < kBlock; ++i) y[i] = v[i] * lift;
  flip(signs, y);
  transform(y);
  const Scaling s = Q4h::scaling(absmax_of(y) / (lift * kRotation));
  Codes codes = codes_of(y, s.lift / (lift * kRotation) * s.inverse, block);
  Values back = decoded(codes, s.step, signs);
  while (!is_finite(back)) {  // a rounding beyond the largest float
    for (uint8_t& code : codes) code = static_cast<uint8_t>(static_cast<int8_t>(code) / 2);
    back = decoded(codes, s.step, signs);
  }
  std::memcpy(out.scales, &s.wire, sizeof(s.wire));
  pack_bits<uint8_t>({codes.data(), coded(n)}, 0, 4, out.codes);
  if (block.residual == nullptr) return true;
  for (size_t i = 0; i < n; ++i) block.residual[i] = v[i] - back[i];
  return true;
}

}  // namespace

BlockCounts q4h_encode(const BlockInput& run, BlockPlanes out) {
  BlockCounts counts;
  for (size_t begin = 0; begin < run.in.size(); begin += kBlock) {
    if (!encode_block(part_of(run, begin, kBlock), Q4h::kShape.at(out, begin))) ++counts.n_non_finite;
  }
  return counts;
}

void q4h_decode(BlockView in, std::span<float> out, Decode how, const ElementRandom& random) {
  for (size_t begin = 0; begin < out.size(); begin += kBlock) {
    const auto block = out.subspan(begin, std::min(kBlock, out.size() - begin));
    const BlockView planes = Q4h::kShape.at(in, begin);
    Codes codes{};
    for (size_t i = 0; i < coded(block.size()); ++i) codes[i] = code_at<Q4h>(planes, i);
    const Values v = decoded(codes, Q4h::step(wire_scale<Q4h>(planes.scales)),
                             signs_of({random.step, random.first + begin}));
    for (size_t i = 0; i < block.size(); ++i) block[i] = how == Decode::kSet ? v[i] : block[i] + v[i];
  }
}

}  // namespace tern::scalar
