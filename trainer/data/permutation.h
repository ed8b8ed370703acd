// A shuffled order without a table.
#pragma once

#include <cstdint>

namespace tern::trainer {

/// A bijection of [0, n), another one for each (seed, epoch); any position costs the same and takes no
/// memory.
///
/// Four Feistel rounds over the least even number of bits that holds n, with Philox as round function, walked
/// until the result is below n (fewer than four walks on average). Source: Luby & Rackoff, SIAM J. Comput.
/// 1988; Black & Rogaway, CT-RSA 2002 (cycle walking).
class Permutation {
 public:
  /// n >= 1.
  Permutation(uint64_t n, uint64_t seed, uint64_t epoch);
  /// position < n.
  uint64_t operator()(uint64_t position) const;

 private:
  uint64_t walk_once(uint64_t value) const;
  uint64_t n_;
  uint64_t seed_;
  uint64_t epoch_;
  int half_bits_;
};

}  // namespace tern::trainer
