// The speeds that the planner prices plans with.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "runtime/bootstrap/world.h"
#include "runtime/communicator/calibration.h"
#include "runtime/plan/simulate.h"

namespace tern {

/// Links between `members` (world ranks; the model numbers them in this order), reduction and codec speeds:
/// equal on all ranks, since all must decide alike.
/// cores: that the members of each host may use together, by member (cores_of_hosts()).
CostModel cost_model(const World& world, std::span<const int> members, std::span<const int> cores,
                     const Calibration& speeds);

/// The prices of the same call with its messages encoded, for elements of `elt` bytes. codec: not `none`.
CostModel encoded_model(CostModel dense, const CodecSpec& codec, size_t elt, const CodecSpeeds& speeds);

/// Asks all members which cores they may use (affinity and cgroup quota respected): by member, how many its
/// host offers the members there. Collective over the members. key: of the store, unique per communicator.
/// Errors: those of exchange_among().
Result<std::vector<int>> cores_of_hosts(const World& world, std::span<const int> members,
                                        std::string_view key);

/// Whether on some host more members run than it has cores for them.
bool is_crowded(const World& world, std::span<const int> members, std::span<const int> cores);

}  // namespace tern
