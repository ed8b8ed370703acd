// `tern sim`: what a call would take on a cluster that is described in a file.
#pragma once

#include "tools/report.h"
#include "tools/sim_choice.h"

namespace tern::tools {

/// Time, bus bandwidth, bytes by kind of link and what limits, of the fastest plan that the question allows.
/// Errors: those of fastest_on().
Result<Report> sim_report(const SimQuestion& question);

/// The built-in clusters, one a line, with their sources.
Report clusters_report();

}  // namespace tern::tools
