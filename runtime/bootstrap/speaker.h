// Who tells the user of a failure: one rank of the world, so that it is one sentence and not one per rank.
#pragma once

#include "runtime/bootstrap/launch.h"

namespace tern {

/// The rank that tells of a failure that all ranks know. What a rank is at fault for, it says itself; of a
/// rank that is lost or late, or of ranks that disagree, rank 0 tells (rank 1 when it is rank 0 that is
/// lost).
int speaker_of(const Error& failure, int size);

/// Whether this process tells of an error of World::from_environment(). What names no rank is this process's
/// own (the store cannot be reached, the secret differs, a variable is wrong) and told by it; the rest is
/// known to all ranks that came.
bool speaks_without_world(const Error& error, const EnvironmentLookup& lookup);

/// Whether this process tells of what is wrong on all ranks alike, such as flags: it is rank 0, or was
/// started alone.
bool speaks_first(const EnvironmentLookup& lookup);

}  // namespace tern
