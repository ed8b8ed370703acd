// The flags of `tern sim`.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>

#include "runtime/base/status.h"
#include "tools/report.h"

namespace tern::tools {

struct SimFlags {
  std::string cluster;
  std::string collective = "all_reduce";
  std::string size = "1G";
  std::string algorithm = "auto";
  std::string codec = "auto";
  std::string step;
  std::string gradient = "bf16";
  std::string json_file;
  int n_ranks = 0;
  std::optional<int> root;
  bool list = false;
};

void add_flags(CLI::App& command, SimFlags& flags);

/// The answer; with --json FILE its data are written there too.
/// Errors: kInvalidArgument (a flag's value), kUnsupported (no such plan), kNotFound, kIo (files).
Result<Report> sim_answer(const SimFlags& flags);

}  // namespace tern::tools
