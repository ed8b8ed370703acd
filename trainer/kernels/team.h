// The threads of one rank: a fork-join team that sleeps when it has nothing to do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace tern::trainer {

/// A half-open range of indices.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

/// Part `part_idx` of `n_parts` nearly equal, contiguous parts of [0, n), cut at multiples of `grain`.
Range part_of(int64_t n, int64_t part_idx, int64_t n_parts, int64_t grain = 1);

/// `size` threads, the caller among them. A team of one creates no thread and calls straight through.
///
/// Waiting threads spin for a few microseconds, and only when the machine has a core for each, then sleep on
/// a futex: ranks may outnumber cores. Threads: run() from one thread at a time.
class Team {
 public:
  explicit Team(int size);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  int size() const { return size_; }

  /// Calls body(member_idx) on every member at once, returns when all have returned. body must not throw.
  void run(const std::function<void(int)>& body);

  /// Calls body(range) on every member with its part of [0, n), cut at multiples of `grain`; empty parts are
  /// skipped.
  void for_range(int64_t n, int64_t grain, const std::function<void(Range)>& body);

 private:
  struct Workers;
  int size_;
  std::unique_ptr<Workers> workers_;
};

}  // namespace tern::trainer
