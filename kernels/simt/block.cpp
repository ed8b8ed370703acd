#include "kernels/simt/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tern::simt {
namespace {

thread_local Block* current_block = nullptr;

constexpr uint64_t kInOrder = 0;
constexpr uint64_t kReversed = 1;
/// In shuffled schedules one memory access in so many lets the others go on first.
constexpr uint32_t kPauseEvery = 16;

void shuffle(std::span<uint32_t> order, Philox& random) {
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.next() % i]);
}

std::string text(const Where& where) {
  return fmt::format("{}:{}", where.file.substr(where.file.rfind('/') + 1), where.line);
}

}  // namespace

Block::Block(const Launch& launch, const std::function<void()>& body)
    : launch_(launch),
      body_(body),
      threads_(launch.shape.block),
      n_warp_syncs_((launch.shape.block + kWarpSize - 1) / kWarpSize),
      dynamic_shared_(launch.shape.shared_bytes),
      random_(launch.seed) {}

Block& Block::current() {
  TERN_CHECK(current_block != nullptr);
  return *current_block;
}

/// Kept from launch to launch: making them costs more than most kernels run.
std::deque<Fiber>& Block::fibers(size_t n) {
  thread_local std::deque<Fiber> fibers;
  while (fibers.size() < n) fibers.emplace_back(thread_main, nullptr);
  return fibers;
}

void Block::thread_main(void* /*unused*/) {
  Block& block = current();
  try {
    block.body_();
  } catch (const Stop&) {  // failure_ says why
  }
  block.threads_[block.running_].state = State::kExited;
}

Status Block::run(uint32_t block_idx) {
  fibers(threads_.size());
  block_idx_ = block_idx;
  n_barriers_ = n_at_barrier_ = 0;
  std::fill(n_warp_syncs_.begin(), n_warp_syncs_.end(), 0U);
  shared_.clear();
  for (Thread& thread : threads_) thread = {.state = State::kReady};

  std::vector<uint32_t> order(threads_.size());
  std::iota(order.begin(), order.end(), 0U);
  if (launch_.seed == kReversed) std::reverse(order.begin(), order.end());
  current_block = this;
  while (pass(order)) {
    if (launch_.seed > kReversed) shuffle(order, random_);
  }
  const bool all_exited = std::all_of(threads_.begin(), threads_.end(),
                                      [](const Thread& t) { return t.state == State::kExited; });
  if (!failure_ && !all_exited) failure_ = stall();
  if (failure_) unwind();
  current_block = nullptr;
  if (failure_) return error(Code::kInternal, "block {}: {}", block_idx, *failure_);
  return {};
}

/// Runs every ready thread until it waits; false when none was ready or something failed.
bool Block::pass(std::span<const uint32_t> order) {
  bool any = false;
  for (const uint32_t thread : order) {
    if (threads_[thread].state != State::kReady) continue;
    any = true;
    step(thread);
    if (failure_) return false;
  }
  return any;
}

void Block::step(uint32_t thread) {
  running_ = thread;
  fibers(threads_.size())[thread].resume();
}

/// Gives the processor up until somebody made this thread ready again.
void Block::wait(State state, const Where& where) {
  Thread& mine = threads_[running_];
  mine.state = state;
  mine.where = where;
  fibers(threads_.size())[running_].pause();
  if (failure_) throw Stop{};
}

/// Throws in all threads that are still waiting, so that their stacks are clean for the next launch.
void Block::unwind() {
  for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
    // A thread that has not started yet would start; `where` is set by the first wait.
    if (threads_[thread].state != State::kExited && threads_[thread].where.line != 0) step(thread);
  }
}

void Block::fail(const std::string& reason, const Where& where) {
  failure_ = fmt::format("thread {} at {} {}", running_, text(where), reason);
  throw Stop{};
}

void Block::barrier(const Where& where) {
  ++n_at_barrier_;
  threads_[running_].where = where;
  if (n_at_barrier_ < threads_.size()) return wait(State::kAtBarrier, where);
  for (uint32_t other = 0; other < threads_.size(); ++other) {
    if (threads_[other].where != where) fail(fmt::format("waits at a barrier, {}", describe(other)), where);
  }
  n_at_barrier_ = 0;
  ++n_barriers_;
  for (Thread& thread : threads_) thread.state = State::kReady;
}

uint64_t Block::warp(const WarpCall& call, const Where& where) {
  const uint32_t lane = running_ % kWarpSize;
  const uint32_t first = running_ - lane;
  const auto n_lanes = std::min<uint32_t>(kWarpSize, static_cast<uint32_t>(threads_.size()) - first);
  const auto existing = static_cast<uint32_t>((uint64_t{1} << n_lanes) - 1);
  if ((call.mask >> lane & 1) == 0)
    fail(
        fmt::format("calls {} with mask {:#x}, which leaves out its own lane {}", call.name, call.mask, lane),
        where);
  if ((call.mask & ~existing) != 0)
    fail(fmt::format("calls {} with mask {:#x}, but its warp has {} lanes", call.name, call.mask, n_lanes),
         where);
  if ((call.mask >> call.source & 1) == 0)
    fail(fmt::format("calls {} for the value of lane {}, which is not in mask {:#x}", call.name, call.source,
                     call.mask),
         where);
  Thread& mine = threads_[running_];
  mine.call = call;
  mine.where = where;
  mine.state = State::kAtWarpCall;
  try_finish(running_);
  if (mine.state == State::kAtWarpCall) wait(State::kAtWarpCall, where);
  return mine.result;
}

/// Completes the warp call that `thread` waits in, if all lanes of its mask wait in it too.
void Block::try_finish(uint32_t thread) {
  const Thread& mine = threads_[thread];
  const uint32_t first = thread - thread % kWarpSize;
  const auto in_mask = [&](uint32_t lane) { return (mine.call.mask >> lane & 1) != 0; };
  WarpCall::Values values = {};
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    if (!in_mask(lane)) continue;
    const Thread& other = threads_[first + lane];
    if (other.state != State::kAtWarpCall || other.call.mask != mine.call.mask || other.where != mine.where)
      return;
    values[lane] = other.call.value;
  }
  if (mine.call.orders_memory && mine.call.mask == UINT32_MAX) ++n_warp_syncs_[first / kWarpSize];
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    if (!in_mask(lane)) continue;
    Thread& other = threads_[first + lane];
    other.result = other.call.result != nullptr ? other.call.result(other.call, values) : 0;
    other.state = State::kReady;
  }
}

Stamp Block::stamp() const {
  return {.thread = running_,
          .block = block_idx_,
          .n_barriers = n_barriers_,
          .n_warp_syncs = n_warp_syncs_[running_ / kWarpSize]};
}

void Block::maybe_pause(const Where& where) {
  if (launch_.seed > kReversed && random_.next() % kPauseEvery == 0) wait(State::kReady, where);
}

void Block::touch_global(const Access& access, const Where& where) {
  maybe_pause(where);
  if (reinterpret_cast<uintptr_t>(access.at) % access.n_bytes != 0)
    fail(fmt::format("touches {} bytes at a misaligned address", access.n_bytes), where);
  if (const auto wrong = launch_.memory->touch(access, stamp())) fail(*wrong, where);
}

void Block::touch_shared(std::span<const std::byte> whole, const Access& access, const Where& where) {
  maybe_pause(where);
  if (reinterpret_cast<uintptr_t>(access.at) % access.n_bytes != 0)
    fail(fmt::format("touches {} bytes at a misaligned address in shared memory", access.n_bytes), where);
  auto it = std::find_if(shared_.begin(), shared_.end(),
                         [&](const auto& known) { return known.first == whole.data(); });
  if (it == shared_.end()) {
    it = shared_.emplace(it, whole.data(), Range("shared memory", whole, true));
    it->second.forget(false);
  }
  if (const auto wrong = it->second.touch(access, stamp())) fail(*wrong, where);
}

std::string Block::describe(uint32_t thread) const {
  const Thread& it = threads_[thread];
  switch (it.state) {
    case State::kExited:
      return fmt::format("thread {} has exited", thread);
    case State::kAtBarrier:
      return fmt::format("thread {} waits at the barrier at {}", thread, text(it.where));
    case State::kAtWarpCall:
      return fmt::format("thread {} waits in {} with mask {:#x} at {}", thread, it.call.name, it.call.mask,
                         text(it.where));
    case State::kReady:
      break;
  }
  return fmt::format("thread {} runs", thread);
}

/// Nobody can go on: a thread that waits, and one that it waits for.
std::string Block::stall() const {
  const auto n = static_cast<uint32_t>(threads_.size());
  uint32_t waiting = 0;
  while (threads_[waiting].state == State::kExited) ++waiting;
  const Thread& one = threads_[waiting];
  for (uint32_t other = 0; other < n; ++other) {
    const Thread& it = threads_[other];
    if (one.state == State::kAtWarpCall &&
        (other / kWarpSize != waiting / kWarpSize || (one.call.mask >> other % kWarpSize & 1) == 0))
      continue;
    if (it.state != one.state || it.where != one.where || it.call.mask != one.call.mask)
      return fmt::format("divergence: {}, {}", describe(waiting), describe(other));
  }
  return fmt::format("{}, for ever", describe(waiting));
}

Status run(const Launch& launch, const std::function<void()>& body) {
  TERN_CHECK(launch.shape.block > 0 && launch.memory != nullptr);
  launch.memory->forget();
  std::vector<uint32_t> order(launch.shape.grid);
  std::iota(order.begin(), order.end(), 0U);
  Philox random(launch.seed, 1);
  if (launch.seed == kReversed) std::reverse(order.begin(), order.end());
  if (launch.seed > kReversed) shuffle(order, random);
  Block block(launch, body);
  for (const uint32_t block_idx : order) TERN_TRY(block.run(block_idx));
  return {};
}

}  // namespace tern::simt
