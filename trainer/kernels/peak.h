// The matrix-product rate that utilisation is measured against.
#pragma once

#include "trainer/kernels/team.h"

namespace tern::trainer {

/// Best fp32 rate, in flops per second, of a product of three 2048 x 2048 matrices shared out among the team,
/// over `n_tries` tries. Takes about 0.1 s per try on two cores and 48 MiB for its duration.
///
/// The clock of a machine changes with load and neighbours: measure beside what is compared with it, in the
/// same run.
double measure_peak_flops(Team& team, int n_tries = 3);

}  // namespace tern::trainer
