// What a communicator consists of: transport, executor, planner, and the progress thread of asynchronous
// calls.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "runtime/bootstrap/world.h"
#include "runtime/communicator/planner.h"
#include "runtime/communicator/work_state.h"
#include "runtime/exec/executor.h"
#include "runtime/transport/transport.h"

namespace tern {

/// Threads: run() and start() may come from several threads; calls execute in the order they were made. A
/// blocking
///          call runs on its caller's thread while no asynchronous one is queued.
class Engine {
 public:
  static Result<std::unique_ptr<Engine>> create(const World& world);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const World& world() const { return world_; }
  std::string_view transport_name() const { return transport_->name(); }
  const CallReport& last_report() const { return last_report_; }

  Status run(const Job& job);
  Result<std::shared_ptr<WorkState>> start(const Job& job);
  void abort(const std::string& why);

 private:
  Engine(const World& world, std::unique_ptr<Transport> transport, CodecSpec default_codec, Planner planner);

  // Everything below run() and the progress thread; holds execution_.
  Status execute(const Job& job, CallReport& report);
  Result<CodecSpec> check(const Job& job) const;  ///< and the codec that the call is to use
  Result<CodecSpec> codec_for(const Job& job) const;
  Call make_call(const Job& job, const Decision& decision, CodecSpec codec);
  void progress();

  World world_;
  std::unique_ptr<Transport> transport_;
  CodecSpec default_codec_;
  Planner planner_;
  Executor executor_;
  uint32_t sequence_ = 0;
  CallReport last_report_;
  std::optional<Error> failed_;  ///< the first error after which nothing runs any more; under execution_

  std::mutex execution_;  ///< held while a call runs
  std::mutex queue_mutex_;
  std::condition_variable queued_;
  std::deque<std::shared_ptr<WorkState>> queue_;  ///< shared with the callers' Work handles
  std::atomic<int> n_queued_{0};                  ///< queued or running asynchronous calls
  bool stopping_ = false;
  std::thread progress_;
};

}  // namespace tern
