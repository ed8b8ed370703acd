// Measures what the planner prices with.
#pragma once

#include "runtime/bootstrap/world.h"
#include "runtime/communicator/calibration.h"

namespace tern {

/// Times copies and sums in a core's cache and beyond it, and messages between rank 0 and the first other
/// rank of its host and the first rank of another host; what the world does not have keeps its built-in
/// value. Collective.
///
/// Result: measured by rank 0; other ranks get what is built in.
/// Cost:   about 0.1 s, and 30 MiB over each of the two links; of all turns the quickest counts, as on a
/// machine
///         that has nothing else to do.
/// Errors: those of connect(); kTimeout, kPeerLost naming the rank.
Result<Calibration> calibrate(const World& world);

}  // namespace tern
