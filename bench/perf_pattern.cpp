#include "bench/perf_pattern.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/arithmetic.h"

namespace tern::bench {
namespace {

/// splitmix64's finaliser (Steele, Lea & Flood, OOPSLA 2014): every input bit changes every output bit.
uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9U;
  x = (x ^ x >> 27) * 0x94D049BB133111EBU;
  return x ^ x >> 31;
}

constexpr int64_t kDoubles = 1LL << 53;  // integers up to here are exact in the doubles used below

template <class T>
constexpr int64_t exact_limit_of() {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<int64_t>(std::min<uint64_t>(std::numeric_limits<T>::max(), kDoubles));
  } else {
    const auto holds = [](int64_t x) {
      const auto wide = static_cast<Accumulator<T>>(x);
      return static_cast<int64_t>(wide) == x && widen(narrow<T>(wide)) == wide;
    };
    int64_t limit = 2;
    while (limit < kDoubles && holds(limit + 1)) limit *= 2;
    return limit;
  }
}

/// The largest integer up to which the dtype holds all integers.
int64_t exact_limit(Dtype dtype) {
  return with_type(dtype, []<class T>(std::type_identity<T>) {
    constexpr int64_t kLimit = exact_limit_of<T>();
    return kLimit;
  });
}

/// A number in [-limit, limit], or [0, limit] where the dtype has no sign.
double bounded(uint64_t hash, int64_t limit, Dtype dtype) {
  const auto n = static_cast<uint64_t>(limit);
  if (!info(dtype).is_signed) return static_cast<double>(hash % (n + 1));
  return static_cast<double>(static_cast<int64_t>(hash % (2 * n + 1)) - limit);
}

/// A term of a sum: |sum over the ranks, in any order| stays within exact_limit.
double term(const Pattern::Key& key, int rank, size_t idx, uint64_t hash) {
  const int64_t limit = exact_limit(key.dtype);
  const int64_t most_factor = key.op == Op::kPremulSum ? 2 : 1;
  if (const int64_t share = limit / key.n_ranks / most_factor; share > 0)
    return bounded(hash, share, key.dtype);
  const auto stride = static_cast<size_t>((key.n_ranks * most_factor + limit - 1) /
                                          limit);  // more ranks than values: few send 1
  return static_cast<size_t>(rank) % stride == idx % stride ? 1 : 0;
}

/// A factor of a product: at most six ranks have one that is not a unit, so no product over- or underflows.
double factor(const Pattern::Key& key, int rank, size_t idx, uint64_t hash) {
  const bool is_unit = (static_cast<size_t>(rank) + idx) % static_cast<size_t>(key.n_ranks) >= 6;
  const double sign = info(key.dtype).is_signed && (hash & 1) != 0 ? -1 : 1;
  constexpr double kFloat[] = {1, 2, 0.5, 2};
  constexpr double kInteger[] = {1, 3, 5, 3};
  const double magnitude = info(key.dtype).is_float ? kFloat[hash >> 1 & 3] : kInteger[hash >> 1 & 3];
  return is_unit ? sign : sign * magnitude;
}

double value(const Pattern::Key& key, int rank, size_t idx) {
  const uint64_t hash = mix(mix(key.seed + 0x9E3779B97F4A7C15U * (static_cast<uint64_t>(rank) + 1)) + idx);
  switch (key.op) {
    case Op::kSum:
    case Op::kAvg:
    case Op::kPremulSum:
      return term(key, rank, idx, hash);
    case Op::kProd:
      return factor(key, rank, idx, hash);
    case Op::kMin:
    case Op::kMax:
      break;
  }
  return bounded(hash, exact_limit(key.dtype), key.dtype);
}

double combine(Op op, double a, double b) {
  switch (op) {
    case Op::kMin:
      return std::min(a, b);
    case Op::kMax:
      return std::max(a, b);
    case Op::kProd:
      return a * b;
    default:
      return a + b;
  }
}

double average_of(Dtype dtype, double sum, int n_ranks) {
  if (!info(dtype).is_float) return std::trunc(sum / n_ranks);
  if (dtype == Dtype::kFloat64) return sum / n_ranks;
  return static_cast<double>(static_cast<float>(sum) / static_cast<float>(n_ranks));
}

void store(Dtype dtype, double x, std::byte* out) {
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    T element;
    if constexpr (std::is_integral_v<T>)
      element = static_cast<T>(static_cast<int64_t>(x));
    else
      element = narrow<T>(static_cast<Accumulator<T>>(x));
    std::memcpy(out, &element, sizeof element);
  });
}

/// Floats as integers in the same order, so that neighbours differ by one (+0 and -0 are equal).
template <class Int>
int64_t ordered(const std::byte* at) {
  Int bits;
  std::memcpy(&bits, at, sizeof bits);
  constexpr Int kMagnitude = std::numeric_limits<Int>::max();
  return bits >= 0 ? bits : -static_cast<int64_t>(bits & kMagnitude);
}

int64_t ordered(Dtype dtype, const std::byte* at) {
  if (size_of(dtype) == 1) return ordered<int8_t>(at);
  if (size_of(dtype) == 2) return ordered<int16_t>(at);
  return size_of(dtype) == 4 ? ordered<int32_t>(at) : ordered<int64_t>(at);
}

bool right(const Pattern::Key& key, const std::byte* expected, const std::byte* actual) {
  if (std::memcmp(expected, actual, size_of(key.dtype)) == 0) return true;
  if (key.op != Op::kAvg || !info(key.dtype).is_float) return false;
  const int64_t a = ordered(key.dtype, expected);
  const int64_t b = ordered(key.dtype, actual);
  const uint64_t distance = static_cast<uint64_t>(std::max(a, b)) - static_cast<uint64_t>(std::min(a, b));
  return distance <= 2;
}

}  // namespace

Pattern::Pattern(const Key& key) : key_(key), reduced_(kPeriod * size_of(key.dtype)) {
  for (size_t i = 0; i < kPeriod; ++i) {
    const auto contribution = [&](int rank) {
      return value(key, rank, i) * (key.op == Op::kPremulSum ? premul_factor(rank) : 1);
    };
    double x = contribution(0);
    for (int r = 1; r < key.n_ranks; ++r) x = combine(key.op, x, contribution(r));
    if (key.op == Op::kAvg) x = average_of(key.dtype, x, key.n_ranks);
    store(key.dtype, x, reduced_.data() + i * size_of(key.dtype));
  }
}

std::vector<std::byte> Pattern::sent(int rank) const {
  const size_t size = size_of(key_.dtype);
  std::vector<std::byte> table(kPeriod * size);
  for (size_t i = 0; i < kPeriod; ++i) store(key_.dtype, value(key_, rank, i), table.data() + i * size);
  return table;
}

void Pattern::fill(int rank, size_t n, void* out) const {
  const size_t size = size_of(key_.dtype);
  if (n == 0) return;
  const std::vector<std::byte> table = sent(rank);
  for (size_t i = 0; i < n; i += kPeriod)
    std::memcpy(static_cast<std::byte*>(out) + i * size, table.data(), std::min(kPeriod, n - i) * size);
}

Verdict Pattern::judge(std::span<const Origin> origins, const void* actual) const {
  const size_t size = size_of(key_.dtype);
  const auto* at = static_cast<const std::byte*>(actual);
  Verdict verdict;
  const auto compare = [&](const std::byte* expected, size_t n) {
    if (std::memcmp(expected, at, n * size) != 0)
      for (size_t i = 0; i < n; ++i)
        verdict.n_wrong += right(key_, expected + i * size, at + i * size) ? 0 : 1;
    at += n * size;
  };
  for (const Origin& origin : origins) {
    if (origin.n == 0) continue;
    const bool is_reduced = origin.source == Origin::kReduced;
    const std::vector<std::byte> one_rank = is_reduced ? std::vector<std::byte>() : sent(origin.source);
    const std::byte* table = is_reduced ? reduced_.data() : one_rank.data();
    for (size_t done = 0; done < origin.n;) {
      const size_t phase = (origin.offset + done) % kPeriod;
      const size_t n = std::min(kPeriod - phase, origin.n - done);
      compare(table + phase * size, n);
      done += n;
    }
  }
  return verdict;
}

}  // namespace tern::bench
