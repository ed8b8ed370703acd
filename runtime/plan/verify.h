// Proves a collective's plans, all ranks together, without running them.
#pragma once

#include <span>

#include "runtime/plan/plan.h"

namespace tern {

/// What an algorithm promises beyond the collective's result.
struct Promises {
  bool rank_order = false;  ///< every sum is taken in rank order, in one pass
};

/// Runs the ranks' plans symbolically: each element of every output holds each due contribution exactly once,
/// every receive matches a send of the same size, peer, order and round, nothing reads what was not written,
/// no step overwrites what a send may still read, scratch stays within what the plan declares, and no cycle
/// of waits exists (with sends that complete only when received). Both in place and out of place, where a
/// plan allows it.
///
/// plans:   one per rank, in rank order; not encoded where promises are made.
/// Cost:    O(steps + chunks x ranks); about 0.1 us a step.
/// Errors:  kInternal with the rank, the step and what is wrong.
Status verify(std::span<const Plan> plans, Promises promises = {});

}  // namespace tern
