#include "bench/perf_gradient.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench/perf_pattern.h"
#include "runtime/base/philox.h"

namespace tern::bench {
namespace {

constexpr size_t kPeriod = Pattern::kPeriod;

template <class T>
double largest(const std::vector<T>& values) {
  double most = 0;
  for (const T x : values) most = std::max(most, std::abs(static_cast<double>(x)));
  return most;
}

}  // namespace

GradientData::GradientData(const Key& key) : key_(key), exact_(kPeriod) {
  const CodecInfo& codec = info(key.codec.id);
  double magnitude = 0;
  for (int r = 0; r < key.n_ranks; ++r) {
    const std::vector<float> values = sent(r);
    for (size_t i = 0; i < kPeriod; ++i) exact_[i] += static_cast<double>(values[i]);
    bound_ += codec.max_error(key.codec, largest(values));
    magnitude += largest(values);
  }
  bound_ += codec.max_error(key.codec, largest(exact_) + bound_);
  bound_ += key.n_ranks * 0x1p-24 * magnitude;  // fp32 additions
  if (key.op != Op::kAvg) return;
  for (double& x : exact_) x /= key.n_ranks;
  bound_ /= key.n_ranks;
}

std::vector<float> GradientData::sent(int rank) const {
  Philox random(key_.seed, static_cast<uint64_t>(rank));
  std::vector<float> values(kPeriod);
  for (float& x : values) x = random.normal();
  return values;
}

void GradientData::fill(int rank, size_t n, void* out) const {
  if (n == 0) return;
  const std::vector<float> values = sent(rank);
  for (size_t i = 0; i < n; i += kPeriod)
    std::memcpy(static_cast<float*>(out) + i, values.data(), std::min(kPeriod, n - i) * sizeof(float));
}

Verdict GradientData::judge(std::span<const Origin> origins, const void* actual) const {
  Verdict verdict;
  const auto* at = static_cast<const float*>(actual);
  for (const Origin& origin : origins) {
    for (size_t i = 0; i < origin.n; ++i) {
      const double exact = exact_[(origin.offset + i) % kPeriod];
      const double error = static_cast<double>(*at++) - exact;
      if (!(std::abs(error) <= bound_)) ++verdict.n_wrong;  // NaN is wrong
      verdict.error_squared += error * error;
      verdict.exact_squared += exact * exact;
    }
  }
  return verdict;
}

}  // namespace tern::bench
