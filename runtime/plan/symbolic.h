// Symbolic values: what a chunk holds, as a record of where it came from. For verify().
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace tern::symbolic {

/// Spreads 64 bits (the finaliser of SplitMix64; Steele, Lea & Flood, OOPSLA 2014).
constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// The content of one chunk.
///
/// `sum` adds up one random 128-bit number per contribution (rank, chunk), so that two values hold the same
/// contributions, each as often, exactly when their sums are equal (up to one chance in 2^128), at a cost
/// that does not grow with the ranks. `form` hashes how it was computed: equal forms give equal bits in any
/// arithmetic where a + b = b + a.
struct Value {
  std::array<uint64_t, 2> sum{};
  uint64_t form = 0;
  int32_t chunk = -1;     ///< -1: never written
  uint8_t quantised = 0;  ///< times the most often encoded contribution was encoded

  bool is_written() const { return chunk >= 0; }
};

/// The share of one rank in chunk `chunk`.
constexpr Value contribution(int rank, int chunk) {
  const uint64_t id = (static_cast<uint64_t>(rank) << 32) | static_cast<uint64_t>(chunk);
  return {{mix(id), mix(~id)}, mix(id ^ 0x5bd1e995), chunk, 0};
}

constexpr Value reduced(const Value& a, const Value& b) {
  Value v = a;
  v.sum = {a.sum[0] + b.sum[0], a.sum[1] + b.sum[1]};
  v.form = mix(std::min(a.form, b.form) + mix(std::max(a.form, b.form)));
  v.quantised = std::max(a.quantised, b.quantised);
  return v;
}

/// Encoded, or encoded and decoded again: the same value, in wire memory or not.
constexpr Value encoded(const Value& a) {
  Value v = a;
  v.form = mix(a.form ^ 0xc2b2ae3d27d4eb4f);
  ++v.quantised;
  return v;
}

}  // namespace tern::symbolic
