// The files that a run leaves behind: one line per step, and a summary.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "trainer/parallel/pending_calls.h"
#include "trainer/storage/output_file.h"

namespace tern::trainer {

/// What the codecs of a step did to rank 0's gradients; measured every communication.telemetry_every steps.
struct CodecTelemetry {
  std::vector<double> vnmse;  ///< by bucket, of what was encoded (EncodingError); 0: dense
  double residual_norm = 0;
};

/// One optimiser step, as rank 0 saw it.
struct StepRecord {
  int64_t step = 0;  ///< from 1
  double loss = 0;   ///< mean over all tokens of the step, in nats
  double lr = 0;
  double grad_norm = 0;  ///< before clipping
  int64_t tokens = 0;    ///< of all ranks
  double step_seconds = 0;
  double data_wait_seconds = 0;
  Traffic gradients;         ///< reduction of gradients
  Traffic parameters;        ///< gathering of updated parameters, and the few bytes of agreement
  std::string codec;         ///< of this step's gradients; "none": all were dense
  int n_non_finite = 0;      ///< buckets in which an encoded element was not finite
  uint64_t n_saturated = 0;  ///< elements that hit the codec's range
  std::optional<CodecTelemetry> telemetry;
  double mfu = 0;       ///< flops of the model over the peak of the cores used; 0: peak not measured
  std::string skipped;  ///< why the update was not applied; empty when it was

  double tokens_per_second() const { return static_cast<double>(tokens) / step_seconds; }
  Traffic traffic() const;
};
nlohmann::ordered_json to_json(const StepRecord& record);

inline constexpr std::string_view kMetricsName = "metrics.jsonl";

/// metrics.jsonl: appended and flushed step by step, so that it can be watched.
class MetricsFile {
 public:
  /// Keeps the lines of steps up to `last_step` (those before a resumed checkpoint) and drops later ones.
  static Result<MetricsFile> open(const std::string& path, int64_t last_step);
  Status append(const StepRecord& record);

 private:
  explicit MetricsFile(OutputFile file) : file_(std::move(file)) {}
  OutputFile file_;
};

/// Collects steps into what summary.json says about them.
class Summary {
 public:
  void add(const StepRecord& record) { records_.push_back(record); }

  /// codec, bytes_on_wire_per_step, bytes_dense_per_step and their gradient_ parts (means over the steps of
  /// this run), step_ms (median), tokens_per_s (at the median), exposed_percent (of the time of all steps),
  /// train_loss (mean of the last steps), steps, skipped_steps. `codec` is the one configured.
  nlohmann::ordered_json to_json(const std::string& codec) const;

 private:
  std::vector<StepRecord> records_;
};

}  // namespace tern::trainer
