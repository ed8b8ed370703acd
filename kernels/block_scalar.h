// Block formats as plain loops: the definition of their bytes, and what does partial, tiny and non-finite
// blocks.
#pragma once

#include <algorithm>

#include "kernels/block_formats.h"
#include "runtime/base/philox.h"

namespace tern::scalar {

/// out = bits [shift, shift + n_bits) of every code, element 0 in the lowest bits of byte 0.
template <class Code>
void pack_bits(std::span<const Code> codes, size_t shift, size_t n_bits, std::byte* out) {
  if (n_bits >= 8) {
    std::memcpy(out, codes.data(), codes.size_bytes());
    return;
  }
  std::memset(out, 0, (codes.size() * n_bits + 7) / 8);
  for (size_t i = 0; i < codes.size(); ++i) {
    const unsigned field = codes[i] >> shift & ((1U << n_bits) - 1);
    out[i * n_bits / 8] |= static_cast<std::byte>(field << i * n_bits % 8);
  }
}
inline unsigned bits_at(const std::byte* in, size_t i, size_t n_bits) {
  return std::to_integer<unsigned>(in[i * n_bits / 8]) >> i * n_bits % 8 & ((1U << n_bits) - 1);
}

/// One block of at most kShape.block elements to codes, one by one. The codes may lie in the message itself,
/// at any address.
template <class Format>
BlockCounts quantise(const BlockInput& block, typename Format::Code* codes, std::byte* scale) {
  const std::span<const float> in = block.in;
  const auto value = [&](size_t i) { return block.residual != nullptr ? in[i] + block.residual[i] : in[i]; };
  uint32_t absmax_bits = 0;
  for (size_t i = 0; i < in.size(); ++i) absmax_bits = std::max(absmax_bits, magnitude_bits(value(i)));
  if (absmax_bits >= kInfinityBits) {
    std::memcpy(scale, &Format::kNan, Format::kShape.scale_bytes);
    std::memset(static_cast<void*>(codes), 0, in.size() * sizeof(*codes));
    return {.n_non_finite = 1};
  }
  const Scaling s = Format::scaling(std::bit_cast<float>(absmax_bits));
  std::memcpy(scale, &s.wire, Format::kShape.scale_bytes);
  const Philox random(kElementSeed, block.random.step);
  BlockCounts counts;
  for (size_t i = 0; i < in.size(); ++i) {
    const float v = value(i);
    const float x = v * s.lift * s.inverse;
    typename Format::Code code;
    if constexpr (Format::kRounds) {
      code = block.stochastic ? Format::code(x, stochastic_offset(random.at(block.random.first + i)))
                              : Format::code(x);
    } else {
      code = Format::code(x);
      if (Format::saturates(x)) ++counts.n_saturated;
    }
    if (absmax_bits >= kHugeBits && std::isinf(Format::value(code) * s.step))
      code = Format::nearer_to_zero(code);
    if (block.residual != nullptr) block.residual[i] = v - Format::value(code) * s.step;
    std::memcpy(static_cast<void*>(codes + i), &code, sizeof(code));
  }
  return counts;
}

/// `block` from element `begin` on, at most n of them.
inline BlockInput part_of(const BlockInput& run, size_t begin, size_t n) {
  BlockInput part = run;
  part.in = run.in.subspan(begin, std::min(n, run.in.size() - begin));
  if (run.residual != nullptr) part.residual = run.residual + begin;
  part.random.first += begin;
  return part;
}

template <class Format>
BlockCounts encode_blocks(const BlockInput& run, BlockPlanes out) {
  constexpr BlockShape kShape = Format::kShape;
  BlockCounts counts;
  for (size_t begin = 0; begin < run.in.size(); begin += kShape.block) {
    const BlockInput block = part_of(run, begin, kShape.block);
    const BlockPlanes planes = kShape.at(out, begin);
    typename Format::Code codes[kShape.block];
    counts += quantise<Format>(block, codes, planes.scales);
    const std::span<const typename Format::Code> used(codes, block.in.size());
    pack_bits(used, 0, kShape.code_bits, planes.codes);
    if constexpr (kShape.high_bits > 0) pack_bits(used, 4, kShape.high_bits, planes.high);
  }
  return counts;
}

template <class Format>
typename Format::Code code_at(BlockView in, size_t i) {
  using Code = typename Format::Code;
  constexpr BlockShape kShape = Format::kShape;
  if constexpr (!Format::kPacked) {
    Code code;
    std::memcpy(&code, in.codes + i * sizeof(Code), sizeof(Code));
    return code;
  } else {
    unsigned code = bits_at(in.codes, i, kShape.code_bits);
    if constexpr (kShape.high_bits > 0) code |= bits_at(in.high, i, kShape.high_bits) << 4;
    return Format::sign_extended(static_cast<Code>(code));
  }
}

template <class Format>
void decode_blocks(BlockView in, std::span<float> out, Decode how) {
  constexpr BlockShape kShape = Format::kShape;
  for (size_t i = 0; i < out.size(); ++i) {
    const float step = Format::step(wire_scale<Format>(in.scales + i / kShape.block * kShape.scale_bytes));
    const float x = Format::value(code_at<Format>(in, i)) * step;
    out[i] = how == Decode::kSet ? x : out[i] + x;
  }
}

}  // namespace tern::scalar
