// Symbolic values: what a chunk holds, as a record of where it came from. For verify().
#pragma once

#include <algorithm>
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
/// `sum` adds up one random 64-bit number per contribution (rank, chunk), so that two values hold the same
/// contributions, each as often, exactly when their sums are equal (up to one chance in 2^64), at a cost that
/// does not grow with the ranks. `form` hashes how it was computed: equal forms give equal bits in any
/// arithmetic where a + b = b + a and that rounds once per pass.
struct Value {
  uint64_t sum = 0;
  uint64_t form = 0;
  int16_t chunk = -1;     ///< -1: never written
  uint8_t quantised = 0;  ///< times the most often encoded contribution was encoded

  bool is_written() const { return chunk >= 0; }
};

/// The share of one rank in chunk `chunk`.
constexpr Value contribution(int rank, int chunk) {
  const uint64_t id = (static_cast<uint64_t>(rank) << 32) | static_cast<uint64_t>(chunk);
  return {mix(id), mix(~id), static_cast<int16_t>(chunk), 0};
}

constexpr uint64_t reduced_form(uint64_t a, uint64_t b) {
  return mix(std::min(a, b) + mix(std::max(a, b)));
}

constexpr Value reduced(const Value& a, const Value& b) {
  Value v = a;
  v.sum += b.sum;
  v.form = reduced_form(a.form, b.form);
  v.quantised = std::max(a.quantised, b.quantised);
  return v;
}

/// The form of a sum that is rounded and written: two sums of a pass each are not one sum of one pass.
constexpr uint64_t rounded_form(uint64_t form) {
  return mix(form ^ 0x27d4eb2f165667c5);
}

/// Encoded, or encoded and decoded again: the same value, in wire memory or not.
constexpr Value encoded(const Value& a) {
  Value v = a;
  v.form = mix(a.form ^ 0xc2b2ae3d27d4eb4f);
  ++v.quantised;
  return v;
}

}  // namespace tern::symbolic
