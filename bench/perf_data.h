// Where test data and the judgement of results come from: exact patterns for dense calls, gradients for lossy
// codecs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "bench/perf_collective.h"

namespace tern::bench {

struct Verdict {
  uint64_t n_wrong = 0;      ///< elements that are not what they must be
  double error_squared = 0;  ///< sum of (actual - exact)^2; lossy data only
  double exact_squared = 0;  ///< sum of exact^2; lossy data only
};

/// The send buffers of all ranks and the results they must give. Every rank makes the same object by itself.
class TestData {
 public:
  virtual ~TestData() = default;
  /// The first n elements of rank `rank`'s send buffer, into `out` (any alignment).
  virtual void fill(int rank, size_t n, void* out) const = 0;
  /// actual: the elements of all origins, one after the other.
  virtual Verdict judge(std::span<const Origin> origins, const void* actual) const = 0;
};

}  // namespace tern::bench
