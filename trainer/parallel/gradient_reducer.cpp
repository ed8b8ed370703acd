#include "trainer/parallel/gradient_reducer.h"

#include <algorithm>

#include "trainer/kernels/gradient_norm.h"

namespace tern::trainer {

Result<GradientReducer> GradientReducer::create(Communicator& comm, const BucketPlan& plan,
                                                const ReducerOptions& options) {
  TERN_ASSIGN(Allocation buffer, comm.allocate(static_cast<size_t>(plan.n_padded()) * sizeof(float)));
  return GradientReducer(comm, plan, options, std::move(buffer));
}

GradientReducer::GradientReducer(Communicator& comm, const BucketPlan& plan, const ReducerOptions& options,
                                 Allocation buffer)
    : comm_(&comm), plan_(&plan), options_(options), buffer_(std::move(buffer)) {
  std::ranges::fill(gradients(), 0.0F);
  if (options_.residual) {
    residual_.resize(static_cast<size_t>(plan.n_padded()));
    residual_before_.resize(residual_.size());
  }
}

void GradientReducer::begin_step(uint32_t step, bool compress) {
  step_ = step;
  compress_ = compress && options_.codec.id != CodecId::kNone;
  non_finite_.reset();
  n_waiting_.clear();
  for (const Bucket& bucket : plan_->buckets()) n_waiting_.push_back(bucket.n_parameters);
  launched_.assign(n_waiting_.size(), false);
}

void GradientReducer::parameter_ready(int param_idx) {
  for (const int bucket_idx : plan_->buckets_of(param_idx)) {
    const bool complete = --n_waiting_[static_cast<size_t>(bucket_idx)] == 0;
    if (complete && options_.overlap) launch(bucket_idx);
  }
}

CallOptions GradientReducer::call_options(int bucket_idx) {
  CallOptions call;
  call.codec = CodecSpec();  // said explicitly: the communicator's default codec is not the run's
  call.step = step_;
  call.bucket = static_cast<uint32_t>(bucket_idx);
  const Bucket& bucket = (*plan_)[bucket_idx];
  if (!compress_ || !bucket.compressible) return call;
  call.codec = options_.codec;
  if (!options_.residual) return call;
  const auto first = residual_.begin() + bucket.begin;
  std::copy(first, first + bucket.size(), residual_before_.begin() + bucket.begin);
  call.residual = residual_.data() + bucket.begin;
  return call;
}

void GradientReducer::launch(int bucket_idx) {
  launched_[static_cast<size_t>(bucket_idx)] = true;
  const Bucket& bucket = (*plan_)[bucket_idx];
  const auto gradients_of = [this](int64_t begin, int64_t end) {
    return gradients().subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  };
  const std::span<float> whole = gradients_of(bucket.begin, bucket.end);
  // Only here is it still known whose value is wrong: the sum of all ranks no longer says.
  const int64_t bad = first_non_finite(std::span<const float>(whole));
  if (bad >= 0 && (!non_finite_ || bucket.begin + bad < non_finite_->element_idx)) {
    non_finite_ = NonFinite{bucket.begin + bad};
  }
  if (calls_.failed()) return;
  const CallOptions call = call_options(bucket_idx);
  if (options_.stage == 0) {
    calls_.add(comm_->all_reduce_async(whole, whole, Op::kSum, call),
               dense_bytes_all_reduce(bucket.size(), comm_->size()));
    return;
  }
  const Range shard = plan_->shard(bucket_idx, comm_->rank());
  calls_.add(comm_->reduce_scatter_async(whole, gradients_of(shard.begin, shard.end), Op::kSum, call),
             dense_bytes_scatter_or_gather(bucket.size(), comm_->size()));
}

Status GradientReducer::finish(Traffic& traffic) {
  for (int bucket_idx = 0; bucket_idx < plan_->size(); ++bucket_idx) {
    if (!launched_[static_cast<size_t>(bucket_idx)]) launch(bucket_idx);
  }
  return calls_.wait_all(traffic);
}

void GradientReducer::roll_back_residual() {
  if (!options_.residual || !compress_) return;
  for (const Bucket& bucket : plan_->buckets()) {
    if (!bucket.compressible) continue;
    const auto first = residual_before_.begin() + bucket.begin;
    std::copy(first, first + bucket.size(), residual_.begin() + bucket.begin);
  }
}

}  // namespace tern::trainer
