// The block formats as types: sizes, scale, and what happens to one element. Everything else about a format,
// scalar or vectors, is made from this.
#pragma once

#include "kernels/block_codec.h"
#include "kernels/block_scale.h"

namespace tern {

/// The scale of a block as it travels: what Format::step() takes.
template <class Format>
uint16_t wire_scale(const std::byte* scale) {
  uint16_t wire = 0;
  std::memcpy(&wire, scale, Format::kShape.scale_bytes);
  return wire;
}

/// Signed integers in [-kMost, kMost], two's complement in kBits; those of 5 and 6 bits have their lower four
/// in one plane and the rest in another.
template <int kBits, size_t kBlock>
struct IntFormat {
  using Code = uint8_t;
  static constexpr BlockShape kShape = {.block = kBlock,
                                        .scale_bytes = sizeof(Bfloat16),
                                        .code_bits = kBits == 8 ? 8 : 4,
                                        .high_bits = kBits == 8 ? 0 : kBits - 4};
  static constexpr bool kPacked = kBits != 8;
  static constexpr bool kRounds = true;  ///< to integers, stochastically if asked
  static constexpr auto kMost = static_cast<float>((1 << (kBits - 1)) - 1);
  static constexpr uint8_t kSignBit = 1 << (kBits - 1);
  static constexpr uint16_t kNan = kNanScale.bits;

  static constexpr Scaling scaling(float absmax) { return bf16_scaling(absmax, kMost); }
  static constexpr float step(uint16_t wire) { return to_float(Bfloat16{wire}); }
  static constexpr Code code(float x) { return static_cast<Code>(nearest_code(x)); }
  static constexpr Code code(float x, float u) { return static_cast<Code>(stochastic_code(x, u, kMost)); }
  static constexpr float value(Code c) { return static_cast<float>(static_cast<int8_t>(c)); }
  static constexpr Code nearer_to_zero(Code c) { return static_cast<Code>(c < 128 ? c - 1 : c + 1); }
  /// From the kBits that travelled.
  static constexpr Code sign_extended(Code c) {
    return static_cast<Code>(((c & (2 * kSignBit - 1)) ^ kSignBit) - kSignBit);
  }
};

/// Shorter floats of a value divided by a scale.
template <class T, class CodeType, size_t kBlock, size_t kScaleBytes>
struct FloatFormat {
  using Code = CodeType;
  using Element = T;
  static constexpr BlockShape kShape = {
      .block = kBlock, .scale_bytes = kScaleBytes, .code_bits = 8 * sizeof(T)};
  static constexpr bool kPacked = false;
  static constexpr bool kRounds = false;
  static constexpr float value(Code c) { return to_float(T{c}); }
  static constexpr Code nearer_to_zero(Code c) { return static_cast<Code>(c - 1); }
};

}  // namespace tern
