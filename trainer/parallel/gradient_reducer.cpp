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

void GradientReducer::begin_step(const ReducerStep& step) {
  step_ = step;
  step_.compress = step.compress && !options_.codec.is_dense();
  order_.clear();
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
  call.step = step_.step;
  call.bucket = static_cast<uint32_t>(bucket_idx);
  const Bucket& bucket = (*plan_)[bucket_idx];
  if (!step_.compress || !bucket.compressible) return call;
  call.codec = options_.codec;
  call.measures_error = step_.measures_error;
  // Each bucket's part of what is hidden: they travel one after the other.
  call.hidden_seconds =
      step_.hidden_seconds * static_cast<double>(bucket.size()) / static_cast<double>(plan_->n_padded());
  if (!options_.residual) return call;
  const auto first = residual_.begin() + bucket.begin;
  std::copy(first, first + bucket.size(), residual_before_.begin() + bucket.begin);
  call.residual = residual_.data() + bucket.begin;
  return call;
}

void GradientReducer::launch(int bucket_idx) {
  launched_[static_cast<size_t>(bucket_idx)] = true;
  if (order_.empty()) first_launch_ = Clock::now();
  order_.push_back(bucket_idx);
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
  overlap_seconds_ = order_.empty() ? 0 : seconds_since(first_launch_);
  for (int bucket_idx = 0; bucket_idx < plan_->size(); ++bucket_idx) {
    if (!launched_[static_cast<size_t>(bucket_idx)]) launch(bucket_idx);
  }
  Status status = calls_.wait_all(traffic);
  note_codecs();
  return status;
}

void GradientReducer::note_codecs() {
  codec_use_ = {};
  codec_use_.errors.resize(static_cast<size_t>(plan_->size()));
  const std::span<const CallReport> reports = calls_.reports();
  for (size_t i = 0; i < reports.size(); ++i) {
    const CallReport& report = reports[i];
    if (report.codec.id == CodecId::kNone) continue;
    ++codec_use_.n_encoded;
    codec_use_.codec = report.codec;
    codec_use_.n_saturated += report.n_saturated;
    codec_use_.n_non_finite += report.non_finite ? 1 : 0;
    codec_use_.errors[static_cast<size_t>(order_[i])] = report.error;
  }
}

void GradientReducer::roll_back_residual() {
  if (!options_.residual || !step_.compress) return;
  for (const Bucket& bucket : plan_->buckets()) {
    if (!bucket.compressible) continue;
    const auto first = residual_before_.begin() + bucket.begin;
    std::copy(first, first + bucket.size(), residual_.begin() + bucket.begin);
  }
}

}  // namespace tern::trainer
