#include "runtime/communicator/work.h"

#include "runtime/communicator/work_state.h"

namespace tern {

Work::Work() = default;
Work::Work(std::shared_ptr<WorkState> state) : state_(std::move(state)) {}
Work::Work(Work&&) noexcept = default;

Work& Work::operator=(Work&& other) noexcept {
  if (this != &other) {
    if (state_ != nullptr) static_cast<void>(wait());
    state_ = std::move(other.state_);
  }
  return *this;
}

Work::~Work() {
  if (state_ != nullptr) static_cast<void>(wait());
}

bool Work::done() const {
  return state_ == nullptr || state_->done.load(std::memory_order_acquire);
}

Status Work::wait(Deadline deadline) {
  if (state_ == nullptr) return {};
  return state_->wait(deadline);
}

const CallReport& Work::report() const {
  TERN_CHECK(state_ != nullptr && done());
  return state_->report;
}

WorkState::WorkState(std::span<const Operation> calls) : operations(calls.begin(), calls.end()) {
  const auto keep = [this](std::span<const size_t>& numbers) {
    if (numbers.empty()) return;
    counts.emplace_back(numbers.begin(), numbers.end());
    numbers = counts.back();
  };
  for (Operation& o : operations) {
    for (Parts* parts : {&o.in_parts, &o.out_parts}) {
      keep(parts->counts);
      keep(parts->offsets);
    }
  }
}

void WorkState::finish(Status result) {
  {
    const std::lock_guard lock(mutex);
    status = std::move(result);
    // Release: whoever sees `done` without the lock also sees status, report and the collective's output.
    done.store(true, std::memory_order_release);
  }
  ended.notify_all();
}

Status WorkState::wait(Deadline deadline) {
  if (!done.load(std::memory_order_acquire)) {
    std::unique_lock lock(mutex);
    const auto is_done = [&] { return done.load(std::memory_order_relaxed); };
    if (deadline.at() == Clock::time_point::max()) {
      ended.wait(lock, is_done);
    } else if (!ended.wait_until(lock, deadline.at(), is_done)) {
      return error(Code::kTimeout, "{} is not done at the deadline of wait()",
                   operations.empty() ? "an empty group" : name(operations.front().collective));
    }
  }
  return status;
}

}  // namespace tern
