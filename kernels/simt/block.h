// One block while it runs: its threads as fibers, where each of them waits, and its shared memory.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/simt/fiber.h"
#include "kernels/simt/launch.h"
#include "runtime/base/philox.h"

namespace tern::simt {

/// A line of a kernel body (std::source_location, which clang 14 does not have).
struct Where {
  std::string_view file;
  int line = 0;  ///< 0: nowhere yet
  static Where current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  bool operator==(const Where&) const = default;
};

/// What the lanes of a warp hand in at a shuffle, vote or reduction; `result` makes a lane's own from them.
struct WarpCall {
  using Values = std::array<uint64_t, kWarpSize>;  ///< 0 for lanes outside of the mask
  std::string_view name;
  uint32_t mask = 0;
  uint64_t value = 0;
  uint32_t source = 0;  ///< the lane that a shuffle reads
  uint64_t (*result)(const WarpCall& mine, const Values& all) = nullptr;
  bool orders_memory = false;
};

/// The block that this OS thread interprets. The words of a kernel body call it, on the fiber of their
/// thread.
class Block {
 public:
  explicit Block(const Launch& launch, const std::function<void()>& body);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() = default;

  static Block& current();

  /// All threads of block `block_idx`, to their end or to the first thing that is wrong.
  Status run(uint32_t block_idx);

  uint32_t n_blocks() const { return launch_.shape.grid; }
  uint32_t n_threads() const { return launch_.shape.block; }
  uint32_t block_idx() const { return block_idx_; }
  uint32_t thread_idx() const { return running_; }

  void barrier(const Where& where);
  uint64_t warp(const WarpCall& call, const Where& where);
  void touch_global(const Access& access, const Where& where);
  /// `whole` is the variable in shared memory that the access lies in.
  void touch_shared(std::span<const std::byte> whole, const Access& access, const Where& where);
  std::span<std::byte> dynamic_shared() { return dynamic_shared_; }
  /// Ends the launch with this reason.
  [[noreturn]] void fail(const std::string& reason, const Where& where);

 private:
  enum class State : uint8_t { kReady, kAtBarrier, kAtWarpCall, kExited };
  struct Thread {
    State state = State::kExited;
    Where where;
    WarpCall call;
    uint64_t result = 0;
  };
  struct Stop {};  // unwinds a fiber when the launch has failed

  static void thread_main(void* unused);
  static std::deque<Fiber>& fibers(size_t n);
  void wait(State state, const Where& where);
  void step(uint32_t thread);
  bool pass(std::span<const uint32_t> order);
  void try_finish(uint32_t thread);
  void maybe_pause(const Where& where);
  Stamp stamp() const;
  std::string stall() const;
  std::string describe(uint32_t thread) const;
  void unwind();

  const Launch& launch_;
  const std::function<void()>& body_;
  std::vector<Thread> threads_;
  std::vector<uint32_t> n_warp_syncs_;
  std::deque<std::pair<const std::byte*, Range>> shared_;
  std::vector<std::byte> dynamic_shared_;
  Philox random_;
  uint32_t block_idx_ = 0;
  uint32_t running_ = 0;
  uint32_t n_at_barrier_ = 0;
  uint32_t n_barriers_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace tern::simt
