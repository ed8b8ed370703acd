// What a run is, said once before it starts.
#pragma once

#include <string>

#include "trainer/run_plan.h"

namespace tern::trainer {

/// Model with its exact parameter count, batch equation, memory per rank, buckets, codec: about fifteen
/// lines.
std::string banner(const RunConfig& config, const RunPlan& plan, int64_t free_bytes);

/// 10891008 -> "10,891,008".
std::string with_commas(int64_t value);

}  // namespace tern::trainer
