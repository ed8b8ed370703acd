#include "trainer/parallel/pending_calls.h"

#include <utility>

namespace tern::trainer {

Traffic& Traffic::operator+=(const Traffic& other) {
  bytes_on_wire += other.bytes_on_wire;
  bytes_dense += other.bytes_dense;
  comm_seconds += other.comm_seconds;
  exposed_seconds += other.exposed_seconds;
  return *this;
}

uint64_t dense_bytes_all_reduce(int64_t n_elements, int n_ranks) {
  return 2 * dense_bytes_scatter_or_gather(n_elements, n_ranks);
}

uint64_t dense_bytes_scatter_or_gather(int64_t n_elements, int n_ranks) {
  return static_cast<uint64_t>(n_elements / n_ranks * (n_ranks - 1)) * sizeof(float);
}

void PendingCalls::add(Result<Work> work, uint64_t bytes_dense) {
  if (!work.ok()) {
    if (first_error_.ok()) first_error_ = work.error();
    return;
  }
  works_.push_back(*std::move(work));
  bytes_dense_ += bytes_dense;
}

Status PendingCalls::wait_all(Traffic& traffic) {
  const auto start = Clock::now();
  reports_.clear();
  for (Work& work : works_) {
    const Status ended = work.wait();
    if (!ended.ok()) {
      if (first_error_.ok()) first_error_ = ended;
      continue;
    }
    traffic.bytes_on_wire += work.report().bytes_on_wire;
    traffic.comm_seconds += work.report().measured_seconds;
    reports_.push_back(work.report());
  }
  if (!first_error_.ok()) reports_.clear();
  traffic.bytes_dense += bytes_dense_;
  traffic.exposed_seconds += seconds_since(start);
  works_.clear();
  bytes_dense_ = 0;
  return std::exchange(first_error_, Status());
}

}  // namespace tern::trainer
