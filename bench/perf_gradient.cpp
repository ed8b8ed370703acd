#include "bench/perf_gradient.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench/perf_pattern.h"
#include "kernels/arithmetic.h"
#include "runtime/base/philox.h"

namespace tern::bench {
namespace {

constexpr size_t kPeriod = Pattern::kPeriod;

/// Calls f with a value of the element type; not called for types that no codec takes.
template <class F>
void with_encodable(Dtype dtype, F f) {
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<Accumulator<T>, float>) f(T{});
  });
}

/// Of rounding a number to the type, as a share of it.
double rounding_of(Dtype dtype) {
  return dtype == Dtype::kBfloat16 ? 0x1p-8 : dtype == Dtype::kFloat16 ? 0x1p-11 : 0x1p-24;
}

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
  // The sum, its average and what an owner sends of it are rounded to the element type.
  bound_ += 3 * rounding_of(key.dtype) * (largest(exact_) + bound_);
  if (key.op != Op::kAvg) return;
  for (double& x : exact_) x /= key.n_ranks;
  bound_ /= key.n_ranks;
}

std::vector<float> GradientData::sent(int rank) const {
  Philox random(key_.seed, static_cast<uint64_t>(rank));
  std::vector<float> values(kPeriod);
  with_encodable(key_.dtype, [&]<class T>(T) {
    for (float& x : values) x = widen(narrow<T>(random.normal()));
  });
  return values;
}

void GradientData::fill(int rank, size_t n, void* out) const {
  if (n == 0) return;
  const std::vector<float> values = sent(rank);
  with_encodable(key_.dtype, [&]<class T>(T) {
    std::vector<T> elements(kPeriod);
    std::transform(values.begin(), values.end(), elements.begin(), narrow<T>);
    for (size_t i = 0; i < n; i += kPeriod)
      std::memcpy(static_cast<T*>(out) + i, elements.data(), std::min(kPeriod, n - i) * sizeof(T));
  });
}

Verdict GradientData::judge(std::span<const Origin> origins, const void* actual) const {
  Verdict verdict;
  with_encodable(key_.dtype, [&]<class T>(T) {
    const T* at = static_cast<const T*>(actual);
    for (const Origin& origin : origins) {
      for (size_t i = 0; i < origin.n; ++i) {
        const double exact = exact_[(origin.offset + i) % kPeriod];
        const double error = static_cast<double>(widen(*at++)) - exact;
        if (!(std::abs(error) <= bound_)) ++verdict.n_wrong;  // NaN is wrong
        verdict.error_squared += error * error;
        verdict.exact_squared += exact * exact;
      }
    }
  });
  return verdict;
}

}  // namespace tern::bench
