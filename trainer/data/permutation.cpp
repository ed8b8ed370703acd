#include "trainer/data/permutation.h"

#include <algorithm>
#include <bit>

#include "runtime/base/philox.h"

namespace tern::trainer {

Permutation::Permutation(uint64_t n, uint64_t seed, uint64_t epoch) : n_(n), seed_(seed), epoch_(epoch) {
  const int bits = std::bit_width(n - 1);
  half_bits_ = std::max(1, (bits + 1) / 2);
}

uint64_t Permutation::walk_once(uint64_t value) const {
  constexpr uint32_t kRounds = 4;
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const PhiloxBlock mixed = philox4x32({static_cast<uint32_t>(right), round, static_cast<uint32_t>(epoch_),
                                          static_cast<uint32_t>(epoch_ >> 32)},
                                         {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
    const uint64_t old_left = left;
    left = right;
    right = (old_left ^ mixed[0]) & mask;
  }
  return left << half_bits_ | right;
}

uint64_t Permutation::operator()(uint64_t position) const {
  uint64_t value = walk_once(position);
  while (value >= n_) value = walk_once(value);
  return value;
}

}  // namespace tern::trainer
