// Monotonic time and deadlines.
#pragma once

#include <algorithm>
#include <chrono>

namespace tern {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// A point in time after which a wait gives up. Value type.
class Deadline {
 public:
  /// Never passes.
  Deadline() : at_(Clock::time_point::max()) {}
  explicit Deadline(Clock::time_point at) : at_(at) {}
  static Deadline after(Seconds s) {
    return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(s));
  }
  bool passed() const { return at_ != Clock::time_point::max() && Clock::now() >= at_; }
  /// Time left; zero when passed, a very long time when it never passes.
  Clock::duration left() const {
    if (at_ == Clock::time_point::max()) return std::chrono::hours(24 * 365);
    return std::max(Clock::duration::zero(), at_ - Clock::now());
  }
  Clock::time_point at() const { return at_; }

 private:
  Clock::time_point at_;
};

inline double seconds_since(Clock::time_point start) {
  return Seconds(Clock::now() - start).count();
}

}  // namespace tern
