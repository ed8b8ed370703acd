// Proves a collective's plans, all ranks together, without running them.
#pragma once

#include <span>

#include "runtime/plan/plan.h"

namespace tern {

/// Runs the ranks' plans symbolically: each element of every output holds each due contribution exactly once,
/// every receive matches a send of the same size, peer, order and round, nothing reads what was not written,
/// no step overwrites what a send of the same round still reads, and no cycle of waits exists (with sends
/// that complete only when received). Both in place and out of place.
///
/// plans:   one per rank, in rank order.
/// Errors:  kInternal with the rank, the step and what is wrong.
Status verify(std::span<const Plan> plans);

}  // namespace tern
