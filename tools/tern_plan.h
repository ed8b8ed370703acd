// `tern plan show` and `tern why`: what would run, and what else could.
#pragma once

#include <string>

#include "runtime/base/config.h"
#include "runtime/codec/codec_choice.h"
#include "runtime/plan/plan.h"
#include "tools/report.h"

namespace tern::tools {

/// A call that is only thought of.
struct PlanQuestion {
  Collective collective = Collective::kAllReduce;
  int n_ranks = 2;
  int n_hosts = 1;  ///< the ranks are spread evenly, neighbours together
  int root = 0;
  uint64_t n_bytes = 1 << 20;  ///< of the whole vector of fp32 elements
  std::string algorithm;       ///< "": the planner's choice; or a rule in TERN_ALGORITHM's grammar
  CodecChoice codec;
  bool has_residual = false;  ///< codec auto: whether the call has one
  double hidden_seconds = 0;  ///< codec auto: of the call that other work hides
  int rank = -1;  ///< whose steps are shown; -1: everybody's
};

/// The work of both answers grows with the square of the ranks: at these, on one core, it is about 10 s to
/// verify the largest plans and 20 s to price every candidate; at four times as many, minutes and gigabytes.
inline constexpr int kMostRanksToShow = 2048;
inline constexpr int kMostRanksToPrice = 1024;

/// The steps of the chosen plan, after verify() has proved all ranks' plans together.
/// Errors: kInvalidArgument (also above kMostRanksToShow), kUnsupported (no such plan), kInternal (the plan
/// is wrong).
Result<Report> plan_report(const PlanQuestion& question, const Config& config);

/// Every candidate with its predicted time, the chosen one marked, under the speeds they were priced with;
/// with codec auto first what each codec that it may take is predicted to do, and the verdict.
/// Errors: kInvalidArgument (also above kMostRanksToPrice), kUnsupported.
Result<Report> why_report(const PlanQuestion& question, const Config& config);

}  // namespace tern::tools
