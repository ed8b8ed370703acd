// Test data whose reduction is known to the bit, whatever the order in which it is added up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/perf_data.h"
#include "runtime/base/dtype.h"

namespace tern::bench {

/// What a rank multiplies its input with for Op::kPremulSum, as nccl-tests chooses it.
constexpr double premul_factor(int rank) {
  return 1 + rank % 2;
}

/// The send buffers of all ranks and the results they must give, for one dtype, operator and world.
///
/// Elements repeat after kPeriod, a prime: no shard, segment or rank offset in use is a multiple of it, so
/// data that lands in the wrong place is seen. sum and avg use integers so small that every partial sum is
/// exact in the dtype (at most 2^24 for fp32, 2^8 for bf16, 2^4 for fp8e4m3), prod uses small powers of two
/// with either sign (integers: 1, 3, 5), min and max any integer that the dtype holds. Cost: kPeriod *
/// n_ranks hashes once; afterwards filling and comparing run at memory speed.
class Pattern final : public TestData {
 public:
  static constexpr size_t kPeriod = 65521;

  struct Key {
    Dtype dtype = Dtype::kFloat32;
    Op op = Op::kSum;
    int n_ranks = 1;
    uint64_t seed = 0;  ///< another seed, other data: a result left over from an earlier call is wrong
    bool operator==(const Key&) const = default;
  };
  explicit Pattern(const Key& key);
  const Key& key() const { return key_; }

  void fill(int rank, size_t n, void* out) const override;
  /// Wrong are elements with other bits than exact arithmetic gives; for kAvg of floats, more than 2 units in
  /// the last place away.
  Verdict judge(std::span<const Origin> origins, const void* actual) const override;

 private:
  std::vector<std::byte> sent(int rank) const;  // kPeriod elements

  Key key_;
  std::vector<std::byte> reduced_;  // kPeriod elements
};

}  // namespace tern::bench
