// `tern calibrate`: measured speeds for the planner.
#pragma once

#include "runtime/base/config.h"
#include "tools/report.h"

namespace tern::tools {

/// Measures on the ranks that a launcher started, or, alone, between two threads, and writes rank 0's result
/// to `file` (unless it is empty). Other ranks' answers are empty. Errors: those of starting a world and of
/// calibrate(); kIo (the file).
Result<Report> calibrate_report(const Config& config, const std::string& file);

}  // namespace tern::tools
