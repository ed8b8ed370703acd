// Runs operations: decides their plans, finds their chunks, and hands them to the executor.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/bootstrap/world.h"
#include "runtime/communicator/operation.h"
#include "runtime/communicator/planner.h"
#include "runtime/communicator/work.h"
#include "runtime/exec/executor.h"
#include "runtime/transport/transport.h"

namespace tern {

/// The ranks of a communicator.
struct Members {
  std::vector<int> ranks;  ///< in the world, in the communicator's order
  int self = 0;            ///< this rank's place among them
  int size() const { return static_cast<int>(ranks.size()); }
};

/// One rank's operations, one after the other on the calling thread. After an operation of a known shape
/// nothing is allocated.
///
/// Threads: one at a time.
class Runner {
 public:
  struct Setup {
    const World* world = nullptr;  ///< outlives the runner, as do `transport` and `accuser`
    const Members* members = nullptr;
    Transport* transport = nullptr;
    Accuser* accuser = nullptr;
    CodecChoice default_codec;
    bool crowded = false;  ///< ranks outnumber cores: waiting must not keep the awaited rank from running
  };
  Runner(const Setup& setup, Planner planner);

  /// Nothing was sent when it fails. Errors: kInvalidArgument, kUnsupported.
  Status check(std::span<const Operation> operations) const;

  /// Collectives in the order given, small all_reduces fused where that is predicted to be faster; then all
  /// messages of the group at once, so that their order on different ranks does not matter.
  /// Errors: those of check(), and of Executor::run().
  Status run(std::span<const Operation> operations, CallReport& report);

  /// Of all calls so far.
  const CodecCounts& codec_counts() const { return codec_counts_; }

 private:
  struct Message {
    int peer;
    bool is_send;
    bool operator==(const Message&) const = default;
  };

  Status check_codec(const Operation& o, size_t count) const;
  Result<CodecVerdict> verdict_for(const Operation& o, size_t count);
  void tally(const CodecVerdict& verdict, const Operation& o);
  Shape shape_of(const Operation& o, size_t count, CodecSpec codec) const;
  Status run_one(const Operation& o, CallReport& report);
  Status run_call(const Operation& o, const ConstView& in, CallReport& report);
  size_t fusible(std::span<const Operation> operations) const;
  Result<bool> fusing_pays(std::span<const Operation> operations, size_t count);
  Status run_fused(std::span<const Operation> operations, CallReport& report);
  Status exchange(std::span<const Operation> operations, CallReport& report);
  Result<const Program*> exchange_program();
  Status check_messages(std::span<const Operation> operations) const;
  Chunks chunks_of(const Operation& o, size_t count);
  Status execute(Call& call, const Operation& o, CallReport& report);
  /// Memory of the runner, at least so large. Errors: kOutOfMemory.
  Result<std::byte*> workspace(size_t n_bytes);

  const World& world_;
  const Members& members_;
  CodecChoice default_codec_;
  Planner planner_;
  Executor executor_;
  uint32_t sequence_ = 0;
  std::vector<size_t> offsets_;
  std::vector<Range> in_pieces_, out_pieces_;
  std::vector<Message> messages_, planned_messages_;
  std::unique_ptr<Program> exchange_;
  Allocation workspace_;
  CodecCounts codec_counts_ = {};
};

}  // namespace tern
