#include "trainer/parallel/bucket_plan.h"

#include <algorithm>

namespace tern::trainer {
namespace {

/// Smaller messages travel dense: a codec saves less than it costs (CODECS: below 64 KiB).
constexpr int64_t kLeastCompressed = (64 << 10) / static_cast<int64_t>(sizeof(float));

/// The largest multiple of `unit` within `n`, at least one unit.
int64_t whole_units(int64_t n, int64_t unit) {
  return std::max<int64_t>(1, n / unit) * unit;
}

}  // namespace

BucketPlan::BucketPlan(const ParameterLayout& layout, const BucketOptions& options)
    : n_ranks_(options.n_ranks) {
  const int64_t unit = options.grain * options.n_ranks;
  const int64_t matrices_end = layout.one_dimensional_begin() / unit * unit;
  cut(0, matrices_end, whole_units(options.bucket_elements, unit), true);

  const int64_t dense_unit = kParameterAlignment * options.n_ranks;
  const int64_t left = layout.n_elements() - matrices_end;
  n_padded_ = matrices_end + (left + dense_unit - 1) / dense_unit * dense_unit;
  cut(matrices_end, n_padded_, whole_units(options.bucket_elements, dense_unit), false);
  std::reverse(buckets_.begin(), buckets_.end());
  count_parameters(layout);
}

void BucketPlan::cut(int64_t begin, int64_t end, int64_t size, bool compressible) {
  for (int64_t at = begin; at < end; at += size) {
    int64_t stop = std::min(at + size, end);
    // A remainder too small for a codec joins the last bucket: what is compressed must not depend on the
    // size.
    const bool joins = compressible && size >= kLeastCompressed && end - stop < kLeastCompressed;
    if (joins) stop = end;
    buckets_.push_back({at, stop, compressible && stop - at >= kLeastCompressed, 0});
    if (joins) break;
  }
}

void BucketPlan::count_parameters(const ParameterLayout& layout) {
  buckets_of_.resize(static_cast<size_t>(layout.size()));
  for (int param_idx = 0; param_idx < layout.size(); ++param_idx) {
    const Parameter& parameter = layout[param_idx];
    for (int bucket_idx = 0; bucket_idx < size(); ++bucket_idx) {
      Bucket& bucket = buckets_[static_cast<size_t>(bucket_idx)];
      if (parameter.offset >= bucket.end || parameter.offset + parameter.size() <= bucket.begin) continue;
      ++bucket.n_parameters;
      buckets_of_[static_cast<size_t>(param_idx)].push_back(bucket_idx);
    }
  }
}

Range BucketPlan::shard(int bucket_idx, int rank) const {
  const Bucket& bucket = (*this)[bucket_idx];
  const int64_t part = bucket.size() / n_ranks_;
  return {bucket.begin + rank * part, bucket.begin + (rank + 1) * part};
}

}  // namespace tern::trainer
