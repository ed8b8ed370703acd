// Waiting that fits the machine: poll, then yield, then sleep until the transport rings.
#pragma once

#include <sched.h>

#include <algorithm>

#include "runtime/base/clock.h"
#include "runtime/exec/executor.h"
#include "runtime/transport/transport.h"

namespace tern {

/// How long spinning pays at present. A wait that ended right after it began to yield says that the awaited
/// rank needed this core: the budget halves. A wait that ended while spinning says that it runs elsewhere:
/// the budget doubles.
class SpinBudget {
 public:
  explicit SpinBudget(Clock::duration most) : most_(most), now_(most) {}
  Clock::duration now() const { return now_; }
  void spun_in_vain() { now_ = std::max<Clock::duration>(now_ / 2, kLeast); }
  void spun_well() { now_ = std::min(now_ * 2, most_); }

 private:
  static constexpr std::chrono::nanoseconds kLeast{500};
  Clock::duration most_;
  Clock::duration now_;
};

/// One wait. step() is called after each poll that found nothing; false when the deadline passed.
class Waiter {
 public:
  Waiter(Transport& transport, SpinBudget& spin, const WaitPolicy& policy, const Deadline& deadline)
      : transport_(transport), spin_(spin), policy_(policy), deadline_(deadline) {}

  /// True when the caller should also progress what it does not wait for itself (pending sends).
  bool idle() const { return n_ > kPolls || n_yields_ > 0 || armed_ || n_sleeps_ > 0; }

  /// True once it has slept: looking at more than the transport costs nothing then.
  bool sleeps() const { return n_sleeps_ > 0; }

  /// The wait ended well.
  void finish() {
    if (policy_.spin == Clock::duration::zero() || n_sleeps_ > 0) return;
    if (n_yields_ > 0) {
      spin_.spun_in_vain();
    } else {
      spin_.spun_well();
    }
  }

  bool step() {
    if (++n_ <= kPolls && policy_.spin > Clock::duration::zero()) {
      pause();
      return true;
    }
    // The clock is read once per kPolls polls while spinning, and at each yield, which costs far more than
    // that.
    if (start_ == Clock::time_point()) start_ = Clock::now();
    const auto waited = Clock::now() - start_;
    if (waited < std::min(spin_.now(), policy_.spin)) {
      for (int i = 0; i < kPausesPerLook; ++i) pause();
      return true;
    }
    if (waited < policy_.spin + policy_.yield) {
      ++n_yields_;
      sched_yield();
      return true;
    }
    return sleep();
  }

 private:
  static constexpr int kPolls = 30;
  static constexpr int kPausesPerLook = 4;
  // Upper bound of one sleep: lost peers and deadlines are noticed at this pace.
  static constexpr std::chrono::milliseconds kSlice{20};

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  // Arms first and sleeps at the next step only, so that the caller polls once between the two: no wake-up is
  // lost.
  bool sleep() {
    if (!armed_) {
      token_ = transport_.arm();
      armed_ = true;
      return true;
    }
    armed_ = false;
    ++n_sleeps_;
    if (deadline_.passed()) return false;
    transport_.sleep(token_, std::min<Clock::duration>(deadline_.left(), kSlice));
    return true;
  }

  Transport& transport_;
  SpinBudget& spin_;
  const WaitPolicy& policy_;
  const Deadline& deadline_;
  int n_ = 0;
  int n_yields_ = 0;
  int n_sleeps_ = 0;
  Clock::time_point start_;
  bool armed_ = false;
  uint64_t token_ = 0;
};

}  // namespace tern
