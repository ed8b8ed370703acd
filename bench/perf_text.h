// The text report: nccl-tests' lines, to the column.
#pragma once

#include <string>

#include "bench/perf_result.h"

namespace tern::bench {

/// A number shortened to `width` columns, right aligned: two decimals, else one, else none, else an exponent.
std::string fit_number(double value, int width);

/// Version, start line, flags and devices.
std::string text_preamble(const RunInfo& run);
/// The three lines above the rows.
std::string text_table_head(const PerfOptions& options);
/// One row; `timestamp` is printed with -S.
std::string text_row(const RowResult& row, const PerfOptions& options, const std::string& timestamp);
std::string text_footer(const RunInfo& run, const Summary& summary);

/// Local time as the reports write it: 2025-12-31 23:59:59.
std::string timestamp_now();

}  // namespace tern::bench
