// What a communicator consists of: its members, transport, runner, and the progress thread of asynchronous
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
#include "runtime/communicator/runner.h"
#include "runtime/communicator/work_state.h"
#include "runtime/transport/transport.h"

namespace tern {

/// Threads: run() and start() may come from several threads; calls execute in the order they were made. A
/// blocking
///          call runs on its caller's thread while no asynchronous one is queued.
class Engine {
 public:
  struct Setup {
    Members members;
    std::string key;     ///< of the store, unique per communicator
    Calibration speeds;  ///< equal on all members
  };
  /// Collective over the members.
  static Result<std::unique_ptr<Engine>> create(const World& world, Setup setup);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const World& world() const { return world_; }
  const Members& members() const { return members_; }
  std::string_view transport_name() const { return transport_->name(); }
  const CallReport& last_report() const { return last_report_; }
  const Calibration& speeds() const { return speeds_; }
  CodecCounts codec_counts();
  /// A key for the next communicator made from this one; the same on all members.
  std::string next_key();

  Status run(std::span<const Operation> operations);
  Result<std::shared_ptr<WorkState>> start(std::span<const Operation> operations);
  void abort(const std::string& why);

 private:
  Engine(const World& world, Setup setup, std::unique_ptr<Transport> transport);

  // Everything below run() and the progress thread; holds execution_.
  Status execute(std::span<const Operation> operations, CallReport& report);
  void progress();

  World world_;
  Members members_;
  std::string key_;
  Calibration speeds_;
  int n_keys_ = 0;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Accuser> accuser_;
  std::unique_ptr<Runner> runner_;
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
