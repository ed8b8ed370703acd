// What a Work handle and the progress thread share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/communicator/operation.h"
#include "runtime/communicator/work.h"

namespace tern {

struct WorkState {
  /// Keeps its own copy of the counts that the operations point at.
  explicit WorkState(std::span<const Operation> calls);

  std::vector<Operation> operations;
  std::vector<std::vector<size_t>> counts;
  Clock::time_point called;
  std::atomic<bool> done{false};
  Status status;
  CallReport report;
  std::mutex mutex;
  std::condition_variable ended;

  void finish(Status result);
  Status wait(Deadline deadline);
};

}  // namespace tern
