// The speeds that the planner prices plans with.
#pragma once

#include "runtime/bootstrap/world.h"
#include "runtime/plan/simulate.h"

namespace tern {

/// Links, reduction and codec speeds of this world: equal on all ranks, since all must decide alike.
CostModel cost_model(const World& world);

/// Cores that the ranks of this host may use (affinity and cgroup quota respected).
int cores_for(const World& world);

}  // namespace tern
