#include "runtime/transport/bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace tern::mailbox {
namespace {

// glibc has no wrapper. The futex is the object representation of the atomic (lock-free, 32 bits).
void futex_wake_all(const std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

uint32_t arm(Bell& bell) {
  // Read before arming: a ring after this line makes the token old. acquire: nothing later may be read before
  // it.
  const uint32_t token = bell.rung.load(std::memory_order_acquire);
  bell.armed.store(1, std::memory_order_seq_cst);  // see the protocol above
  return token;
}

void disarm(Bell& bell) {
  // relaxed: a publisher that still sees 1 rings once for nothing.
  bell.armed.store(0, std::memory_order_relaxed);
}

void ring_if_armed(Bell& bell) {
  if (bell.armed.load(std::memory_order_seq_cst) == 0) [[likely]]
    return;  // see the protocol above
  // Of several publishers only one makes the system call. acq_rel: the increment below must not move before
  // it.
  if (bell.armed.exchange(0, std::memory_order_acq_rel) != 0) ring(bell);
}

void ring(Bell& bell) {
  // release: whoever sees the new count sees what was published before it.
  bell.rung.fetch_add(1, std::memory_order_release);
  futex_wake_all(bell.rung);
}

void sleep_on(const Bell& bell, uint32_t token, Clock::duration at_most) {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(at_most).count();
  if (ns <= 0) return;
  timespec timeout{};
  timeout.tv_sec = static_cast<time_t>(ns / 1'000'000'000);
  timeout.tv_nsec = static_cast<long>(ns % 1'000'000'000);
  // Every outcome (woken, token old, timeout, signal) means the same to the caller: look again.
  ::syscall(SYS_futex, &bell.rung, FUTEX_WAIT, token, &timeout, nullptr, 0);
}

bool has_rung(const Bell& bell, uint32_t token) {
  return bell.rung.load(std::memory_order_acquire) != token;  // acquire: pairs with ring()
}

}  // namespace tern::mailbox
