// What follows from a configuration and the number of ranks, before anything is allocated.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/bootstrap/world.h"
#include "runtime/codec/codec_choice.h"
#include "trainer/config/run_config.h"
#include "trainer/parallel/bucket_plan.h"

namespace tern::trainer {

/// The ranks that a run is planned for.
struct Ranks {
  int n = 1;
  int per_host = 1;     ///< on the host where most are
  int threads_set = 0;  ///< TERN_THREADS; 0: not set
};
Ranks ranks_of(const World& world);

struct RunPlan {
  Batch batch;
  CodecChoice codec;
  bool residual = false;
  int64_t dense_steps = 0;  ///< first steps without the codec
  int threads = 1;          ///< per rank
  BucketOptions buckets;

  int64_t tokens_per_step(const RunConfig& config) const { return batch.train * config.data.sequence_length; }
};

/// Bytes per rank.
struct MemoryNeed {
  int64_t parameters = 0;
  int64_t gradients = 0;
  int64_t moments = 0;
  int64_t residuals = 0;  ///< and their copy from before the step
  int64_t activations = 0;

  int64_t shared() const { return parameters + gradients; }  ///< in the heap that collectives read
  int64_t total() const { return parameters + gradients + moments + residuals + activations; }
};

/// Errors: kInvalidArgument, kUnsupported: the batch equation, the codec, a residual that the codec does not
/// have, a vocabulary smaller than the tokenizer's.
Result<RunPlan> plan_run(const RunConfig& config, const Ranks& ranks);

MemoryNeed predict_memory(const RunConfig& config, const RunPlan& plan);

/// Bytes that this machine can still give (MemAvailable); -1 when it does not say.
int64_t free_memory();

/// Ok, or kOutOfMemory with the numbers when the ranks of this machine need more than it has.
Status check_memory(const MemoryNeed& need, const Ranks& ranks, int64_t free_bytes);

}  // namespace tern::trainer
