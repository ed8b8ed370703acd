#include "trainer/kernels/team.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "runtime/base/status.h"

namespace tern::trainer {

namespace {

// Long enough to bridge the gap between two phases of a pass, short against a scheduler's time slice.
constexpr int kSpins = 2000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Returns once `value` differs from `old`.
uint32_t wait_change(const std::atomic<uint32_t>& value, uint32_t old, int spins) {
  for (int i = 0; i < spins; ++i) {
    // acquire: what the other side wrote before its release store must be visible to the work that follows
    const uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    relax();
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

Range part_of(int64_t n, int64_t part_idx, int64_t n_parts, int64_t grain) {
  const int64_t n_grains = (n + grain - 1) / grain;
  const int64_t begin = n_grains * part_idx / n_parts * grain;
  const int64_t end = n_grains * (part_idx + 1) / n_parts * grain;
  return {std::min(begin, n), std::min(end, n)};
}

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): what threads poll has lines of its own
struct Team::Workers {
  std::vector<std::thread> threads;
  const std::function<void(int)>* body =
      nullptr;  // written before `round` is released, null asks workers to leave
  alignas(64) std::atomic<uint32_t> round{0};
  alignas(64) std::atomic<uint32_t> n_done{0};  // of all rounds together; wraps as `round` does
  int spins = 0;

  void work(int member_idx) {
    uint32_t seen = 0;
    while (true) {
      seen = wait_change(round, seen, spins);
      if (body == nullptr) return;
      (*body)(member_idx);
      // release: the member's results happen before the caller sees the count
      n_done.fetch_add(1, std::memory_order_release);
      n_done.notify_one();
    }
  }

  void start_round(const std::function<void(int)>* next) {
    body = next;
    round.fetch_add(1,
                    std::memory_order_release);  // release: publishes `body` and all the caller wrote before
    round.notify_all();
  }
};

Team::Team(int size) : size_(size) {
  TERN_CHECK(size >= 1);
  if (size == 1) return;
  workers_ = std::make_unique<Workers>();
  workers_->spins = static_cast<int>(std::thread::hardware_concurrency()) >= size ? kSpins : 0;
  for (int i = 1; i < size; ++i) workers_->threads.emplace_back([w = workers_.get(), i] { w->work(i); });
}

Team::~Team() {
  if (!workers_) return;
  workers_->start_round(nullptr);
  for (std::thread& thread : workers_->threads) thread.join();
}

void Team::run(const std::function<void(int)>& body) {
  if (!workers_) return body(0);
  const auto n_workers = static_cast<uint32_t>(size_ - 1);
  // relaxed: only this thread waits for the count, and it was complete when the last round returned
  const uint32_t target = workers_->n_done.load(std::memory_order_relaxed) + n_workers;
  workers_->start_round(&body);
  body(0);
  uint32_t done = workers_->n_done.load(std::memory_order_acquire);
  while (done != target) done = wait_change(workers_->n_done, done, workers_->spins);
}

void Team::for_range(int64_t n, int64_t grain, const std::function<void(Range)>& body) {
  run([&](int member_idx) {
    const Range range = part_of(n, member_idx, size_, grain);
    if (range.size() > 0) body(range);
  });
}

}  // namespace tern::trainer
