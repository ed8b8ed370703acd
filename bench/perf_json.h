// The JSON report: nccl-tests' version 3, with Tern's facts in addition.
#pragma once

#include <string>
#include <vector>

#include "bench/perf_result.h"

namespace tern::bench {

/// A whole run.
struct JsonReport {
  const RunInfo* run = nullptr;
  const std::vector<RowResult>* rows = nullptr;
  const Summary* summary = nullptr;
  std::string start_time;
  std::string end_time;
};

/// Truth values are the strings "true" and "false", root is text and numbers that are not finite are "nan",
/// as nccl-tests writes them. Added per placement: predicted_us, algorithm, bytes_on_wire, and vnmse of codec
/// runs.
std::string to_json(const JsonReport& report);

/// Writes the report. Errors: kIo naming the file.
Status write_json(const std::string& path, const JsonReport& report);

}  // namespace tern::bench
