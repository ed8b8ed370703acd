// What a Work handle and the progress thread share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "runtime/base/dtype.h"
#include "runtime/communicator/communicator.h"
#include "runtime/communicator/work.h"

namespace tern {

/// One collective as it was called.
struct Job {
  Collective collective = Collective::kBarrier;
  ConstView in;
  View out;
  size_t count = 0;  ///< elements of the whole vector
  Op op = Op::kSum;
  int root = 0;
  CallOptions options;
};

struct WorkState {
  Job job;
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
