// Measures what the planner prices with.
#pragma once

#include "runtime/bootstrap/world.h"
#include "runtime/communicator/calibration.h"

namespace tern {

/// Times copies, sums and codecs in a core's cache, copies beyond it, and messages between rank 0 and the
/// first other rank of its host and the first rank of another host; what the world does not have keeps its
/// built-in value. Collective.
///
/// Result: measured by rank 0; other ranks get what is built in.
/// Cost:   about 0.1 s, and for each of the two links as much again, in which up to 320 MiB pass; of all
///         turns the quickest counts, as on a machine that has nothing else to do.
/// Errors: those of connect(); kTimeout, kPeerLost naming the rank.
Result<Calibration> calibrate(const World& world);

/// Seconds per byte of what a longer transfer has more than a shorter one, from the seconds of both. Others
/// on the machine may hold the shorter one up until it takes as long as the longer one, or longer: a quarter
/// of the longer time counts in any case, since latency is a small part of it.
double added_beta(double less, double more, size_t n_bytes);

/// What the planners of a world price with, equal on all ranks: the file that TERN_CALIBRATION names; else,
/// for processes on several hosts, what calibrate() finds now; else, or when that fails (with a warning),
/// what is built in. Collective, once. Errors: those of calibration_of(); kTimeout, kPeerLost.
Result<Calibration> speeds_of(const World& world);

}  // namespace tern
