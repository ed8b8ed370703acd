// Test data for lossy codecs: normal numbers like a gradient's, with the error that the codec may make of
// their sum.
#pragma once

#include <vector>

#include "bench/perf_data.h"
#include "runtime/codec/codec.h"

namespace tern::bench {

/// Sums and averages through a codec. Wrong are elements further from the exact result than every rank's
/// encoding and one encoding of the sum may bring them (CodecInfo::max_error of the largest magnitude there
/// is), and the roundings to the element type. Elements repeat after Pattern::kPeriod.
class GradientData final : public TestData {
 public:
  struct Key {
    CodecSpec codec;
    Dtype dtype = Dtype::kFloat32;  ///< is_encodable()
    Op op = Op::kSum;               ///< kSum or kAvg
    int n_ranks = 1;
    uint64_t seed = 0;
  };
  explicit GradientData(const Key& key);
  void fill(int rank, size_t n, void* out) const override;
  Verdict judge(std::span<const Origin> origins, const void* actual) const override;

  double bound() const { return bound_; }

 private:
  std::vector<float> sent(int rank) const;  // one period, as the dtype holds it

  Key key_;
  std::vector<double> exact_;  // one period of the result
  double bound_ = 0;           // of |result - exact|
};

}  // namespace tern::bench
