// What the codecs whose blocks share a scale have in common: their planes, what is encoded, and how codes are
// packed into bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern {

/// out = the elements, or out += the elements (in fp32, rounded once).
enum class Decode : uint8_t { kSet, kAdd };

/// Where the encoded planes of a run of blocks lie; any alignment. A format uses the planes that it has.
template <class Byte>
struct BlockPlanesOf {
  Byte* scales = nullptr;
  Byte* codes = nullptr;
  Byte* high = nullptr;  ///< the upper bits of codes longer than the four that `codes` then holds
};
using BlockPlanes = BlockPlanesOf<std::byte>;
using BlockView = BlockPlanesOf<const std::byte>;

/// Random numbers that depend on nothing but a step and an element: Philox(seed, step), number element_idx.
/// Same numbers for any cutting into messages, runs and threads.
struct ElementRandom {
  uint32_t step = 0;
  uint64_t first = 0;  ///< element_idx of the run's first element
};
inline constexpr uint64_t kElementSeed = 0x5465726E;  // "Tern"

/// A run of elements to encode: v = in, or v = in + residual when residual is not null; the residual (as many
/// floats, not overlapping `in`) then becomes v - decoded, rounded once. A block with a non-finite v decodes
/// to NaN and leaves its residual as it was.
struct BlockInput {
  std::span<const float> in = {};
  float* residual = nullptr;
  bool stochastic = false;  ///< round up with the probability that makes the mean exact, else to the nearest
  ElementRandom random = {};
};

struct BlockCounts {
  size_t n_non_finite = 0;  ///< blocks
  size_t n_saturated = 0;   ///< elements
  void operator+=(const BlockCounts& other) {
    n_non_finite += other.n_non_finite;
    n_saturated += other.n_saturated;
  }
};

/// The sizes of a block format, from which its planes follow.
struct BlockShape {
  size_t block;           ///< elements that share a scale
  size_t scale_bytes;     ///< of a block
  size_t code_bits;       ///< of an element in `codes`: element 0 in the lowest bits of byte 0
  size_t high_bits = 0;   ///< the same in `high`
  size_t code_group = 1;  ///< elements that have codes together: the last ones are filled up with zeros
  size_t high_group = 1;  ///< elements that share an entry of `high`

  constexpr size_t scales(size_t n) const { return (n + block - 1) / block * scale_bytes; }
  constexpr size_t codes(size_t n) const {
    return ((n + code_group - 1) / code_group * code_group * code_bits + 7) / 8;
  }
  constexpr size_t high(size_t n) const { return ((n + high_group - 1) / high_group * high_bits + 7) / 8; }
  constexpr double bits_per_element() const {
    return static_cast<double>(code_bits) + static_cast<double>(high_bits) / static_cast<double>(high_group) +
           8.0 * static_cast<double>(scale_bytes) / static_cast<double>(block);
  }
  /// The planes from element `begin` on, a multiple of the block.
  template <class Planes>
  constexpr Planes at(Planes planes, size_t begin) const {
    planes.scales += scales(begin);
    planes.codes += codes(begin);
    if (high_bits > 0) planes.high += high(begin);
    return planes;
  }
};

}  // namespace tern
