// A data-parallel training step on a cluster: what of its communication backward and forward do not hide.
#pragma once

#include <string>

#include "runtime/topology/cluster.h"
#include "tools/report.h"

namespace tern::tools {

/// What is trained and how; every figure is printed with the answer.
struct StepModel {
  std::string name;
  double n_params = 0;
  double n_active_params = 0;  ///< per token: a mixture of experts uses some of its parameters
  int tensor_parallel = 1;     ///< ranks that share one copy of the model, inside a node
  double tokens_per_step = 0;  ///< of all ranks
  int n_micro_batches = 1;     ///< per step; gradients are reduced once
  double utilisation = 0;      ///< share of the device's peak that compute reaches without communication
  std::string source;
};

/// Errors: kInvalidArgument naming the models.
Result<StepModel> find_step_model(const std::string& name);
std::string step_model_names();

struct StepQuestion {
  StepModel model;
  Cluster cluster;
  size_t gradient_bytes = 2;  ///< per gradient on the dense wire
};

/// ZeRO-2: gradients are reduce-scattered (inside nodes first, then across), parameters gathered in bf16.
/// Compares the dense step without overlap with overlap, a codec for the gradients, and both.
///
/// Overlap: gradients are ready bucket after bucket while the last micro-batch's backward runs; parameters
/// are gathered in the order in which the first micro-batch's forward needs them. Buckets go through the two
/// levels as a pipeline, each level one bucket at a time; what each takes is simulated.
/// Errors: kInvalidArgument (nodes that do not suit the model, a device of unknown speed), kUnsupported.
Result<Report> step_report(const StepQuestion& question);

/// Seconds by which communication prolongs a phase of `compute` seconds cut in as many buckets as
/// `stages[s]` says it takes at each stage: what is ready late ends late.
struct BucketTimes {
  int n_buckets = 1;
  std::vector<double> stages;  ///< s of one bucket, by level in order
};
/// Backward: bucket i is ready at (i + 1) / n of it. Result: from its end to the last bucket's.
double exposed_after(double compute, const BucketTimes& times);
/// Forward: part i of it starts when bucket i is there and part i - 1 is done; all buckets are ready at once.
double exposed_before(double compute, const BucketTimes& times);

}  // namespace tern::tools
