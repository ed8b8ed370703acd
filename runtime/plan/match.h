// Which send each receive gets; the second step of verify().
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/plan.h"

namespace tern {

/// By rank and step: of a receive, the index of the send that it gets among its peer's steps.
class Matches {
 public:
  explicit Matches(std::span<const Plan> plans);
  uint32_t send_of(int rank, size_t step) const { return send_of_[first_[static_cast<size_t>(rank)] + step]; }
  void set(int rank, size_t step, uint32_t send) {
    send_of_[first_[static_cast<size_t>(rank)] + step] = send;
  }

 private:
  std::vector<size_t> first_;  // by rank
  std::vector<uint32_t> send_of_;
};

/// Pairs sends and receives: between two ranks in order, within a round.
///
/// A round's sends are received in the same round, all are posted when the round starts, and a rank waits for
/// nothing else: by induction over the rounds every wait ends, whatever is buffered. So this is also the
/// proof that no cycle of waits exists.
///
/// plans:  each well formed, one per rank in rank order.
/// Cost:   O(steps + rounds x ranks).
/// Errors: kInternal (a receive without a send, a send without a receive, or two that move different chunks).
Result<Matches> match_messages(std::span<const Plan> plans);

}  // namespace tern
