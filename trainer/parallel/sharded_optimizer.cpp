#include "trainer/parallel/sharded_optimizer.h"

#include "trainer/kernels/gradient_norm.h"

namespace tern::trainer {
namespace {

template <class T>
std::span<T> part(std::span<T> all, int64_t begin, int64_t n) {
  return all.subspan(static_cast<size_t>(begin), static_cast<size_t>(n));
}

}  // namespace

std::vector<OwnedRange> owned_ranges(const BucketPlan& plan, int stage, int rank) {
  if (stage == 0) return {{0, plan.n_padded(), 0}};
  std::vector<OwnedRange> ranges;
  int64_t n_owned = 0;
  for (int bucket_idx = plan.size() - 1; bucket_idx >= 0; --bucket_idx) {
    const Range shard = plan.shard(bucket_idx, rank);
    ranges.push_back({shard.begin, shard.end, n_owned});
    n_owned += shard.size();
  }
  return ranges;
}

ShardedOptimizer::ShardedOptimizer(Communicator& comm, const BucketPlan& plan, int stage)
    : comm_(&comm), plan_(&plan), stage_(stage), ranges_(owned_ranges(plan, stage, comm.rank())) {
  const auto n_owned = static_cast<size_t>(ranges_.back().state_begin + ranges_.back().size());
  m_.resize(n_owned);
  v_.resize(n_owned);
}

double ShardedOptimizer::sum_of_squares(Team& team, std::span<const float> gradients) const {
  double sum = 0;
  for (const OwnedRange& range : ranges_) {
    sum += trainer::sum_of_squares(team, part(gradients, range.begin, range.size()));
  }
  return sum;
}

void ShardedOptimizer::start_update(Team& team, const AdamW& adamw, std::span<float> params,
                                    std::span<const float> gradients) {
  const int last_bucket = plan_->size() - 1;
  for (size_t idx = 0; idx < ranges_.size(); ++idx) {
    const OwnedRange& range = ranges_[idx];
    adamw_step(team, adamw, part(params, range.begin, range.size()),
               part(gradients, range.begin, range.size()),
               part(std::span(m_), range.state_begin, range.size()),
               part(std::span(v_), range.state_begin, range.size()));
    if (stage_ == 2) gather(last_bucket - static_cast<int>(idx), params);
  }
}

void ShardedOptimizer::gather(int bucket_idx, std::span<float> params) {
  if (gathers_.failed()) return;
  const Bucket& bucket = (*plan_)[bucket_idx];
  const Range shard = plan_->shard(bucket_idx, comm_->rank());
  const std::span<const float> mine = part(params, shard.begin, shard.size());
  gathers_.add(comm_->all_gather_async(mine, part(params, bucket.begin, bucket.size())),
               dense_bytes_scatter_or_gather(bucket.size(), comm_->size()));
}

}  // namespace tern::trainer
