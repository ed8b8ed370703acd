// Which gradients are reduced together, and which part of each bucket a rank owns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/kernels/team.h"
#include "trainer/model/parameters.h"

namespace tern::trainer {

/// A run of the flat buffer that one collective reduces.
struct Bucket {
  int64_t begin = 0;          ///< flat element
  int64_t end = 0;            ///< a multiple of the world size away from begin
  bool compressible = false;  ///< matrices only, and large enough for a codec to pay
  int n_parameters = 0;       ///< parameters with elements in it: so many must be ready before it can go

  int64_t size() const { return end - begin; }
};

struct BucketOptions {
  int64_t bucket_elements = 500'000'000;  ///< reduce_bucket_size
  int n_ranks = 1;
  /// Elements between possible cuts of a rank's shard: the codec's block, so that no block is ever cut.
  int64_t grain = kParameterAlignment;
};

/// Cuts the flat buffer into buckets. A value; the same on every rank.
///
/// Cuts lie at multiples of n_ranks * grain from the start of the flat buffer, whatever the bucket size: a
/// codec sees the same blocks for every bucketing. What is left of the matrices after the last whole
/// multiple, and the one-dimensional parameters, form dense buckets at the end. Buckets may be smaller than a
/// tensor or larger than the model. Cost: at most n_ranks * grain elements of padding.
class BucketPlan {
 public:
  BucketPlan(const ParameterLayout& layout, const BucketOptions& options);

  /// By descending place, about the order in which backward finishes them.
  const std::vector<Bucket>& buckets() const { return buckets_; }
  const Bucket& operator[](int bucket_idx) const { return buckets_[static_cast<size_t>(bucket_idx)]; }
  int size() const { return static_cast<int>(buckets_.size()); }

  /// Elements that the flat gradient and parameter buffers must have; at least layout.n_elements().
  int64_t n_padded() const { return n_padded_; }

  /// Elements [begin, end) of the flat buffer that `rank` owns of the bucket: the rank-th of n_ranks equal
  /// parts.
  Range shard(int bucket_idx, int rank) const;

  /// Buckets that hold elements of the parameter, ascending.
  std::span<const int> buckets_of(int param_idx) const { return buckets_of_[static_cast<size_t>(param_idx)]; }

 private:
  void cut(int64_t begin, int64_t end, int64_t size, bool compressible);
  void count_parameters(const ParameterLayout& layout);

  int n_ranks_;
  int64_t n_padded_ = 0;
  std::vector<Bucket> buckets_;
  std::vector<std::vector<int>> buckets_of_;
};

}  // namespace tern::trainer
