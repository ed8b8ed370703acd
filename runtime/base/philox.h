// Counter-based random numbers: the same (seed, stream, index) gives the same number on every rank and
// machine.
//
// Philox4x32-10: ten rounds of a multiply-and-xor bijection on a 128-bit counter under a 64-bit key. No state
// to carry, so a generator can be entered anywhere: element i of a tensor needs block i / 4 only. Source:
// Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

namespace tern {

using PhiloxBlock = std::array<uint32_t, 4>;

/// The bijection itself: 128 random bits for a counter and a key.
constexpr PhiloxBlock philox4x32(PhiloxBlock counter, std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;  // golden ratio
  constexpr uint32_t kWeyl1 = 0xBB67AE85;  // sqrt(3) - 1
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

/// A stream of random numbers, entered at any index. Value type; 2^64 streams per seed, 2^66 numbers per
/// stream.
class Philox {
 public:
  explicit constexpr Philox(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  /// Numbers 4 * block_idx .. 4 * block_idx + 3 of the stream.
  constexpr PhiloxBlock block(uint64_t block_idx) const {
    return philox4x32({static_cast<uint32_t>(block_idx), static_cast<uint32_t>(block_idx >> 32),
                       static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                      {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
  }
  /// Number `idx` of the stream, whatever was drawn before.
  constexpr uint32_t at(uint64_t idx) const { return block(idx / 4)[idx % 4]; }

  /// The next number; one block is computed per four calls.
  constexpr uint32_t next() {
    if (next_idx_ % 4 == 0) current_ = block(next_idx_ / 4);
    return current_[next_idx_++ % 4];
  }
  constexpr uint64_t next64() {
    const uint64_t low = next();
    return low | static_cast<uint64_t>(next()) << 32;
  }
  /// Uniform in [0, 1), 24 bits.
  constexpr float uniform() { return to_uniform(next()); }
  /// Uniform in [0, n), n > 0; the bias is below n / 2^64.
  constexpr uint64_t below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next64()) * n) >> 64);
  }
  /// Normal, mean 0, variance 1 (Box & Muller 1958; one of the pair is dropped so that every draw takes two
  /// numbers).
  float normal() {
    const double u = (static_cast<double>(next()) + 1.0) * 0x1p-32;  // (0, 1]: the logarithm stays finite
    const double angle = 2.0 * std::numbers::pi * to_uniform(next());
    return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(angle));
  }

  /// Moves to number `idx`.
  constexpr void seek(uint64_t idx) {
    next_idx_ = idx;
    if (idx % 4 != 0) current_ = block(idx / 4);
  }
  constexpr uint64_t position() const { return next_idx_; }

  static constexpr float to_uniform(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24F; }

 private:
  uint64_t seed_;
  uint64_t stream_;
  uint64_t next_idx_ = 0;
  PhiloxBlock current_ = {};
};

}  // namespace tern
