// The speeds that the planner prices plans with.
#pragma once

#include "runtime/bootstrap/world.h"
#include "runtime/plan/simulate.h"

namespace tern {

/// Links between `members` (world ranks; the model numbers them in this order), reduction and codec speeds:
/// equal on all ranks, since all must decide alike.
CostModel cost_model(const World& world, std::span<const int> members);

/// Cores that the ranks of this host may use (affinity and cgroup quota respected).
int cores_for(const World& world);

}  // namespace tern
