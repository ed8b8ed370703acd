#include "trainer/output_dir.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "trainer/checkpoint/manifest.h"
#include "trainer/metrics.h"

namespace tern::trainer {
namespace {

namespace fs = std::filesystem;

std::string names_of(const std::string& output_dir, const std::vector<int64_t>& steps) {
  std::vector<std::string> names;
  names.reserve(steps.size());
  for (const int64_t step : steps)
    names.push_back(fs::path(checkpoint_path(output_dir, step)).filename().string());
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Leftovers find_leftovers(const std::string& output_dir, const std::string& start) {
  Leftovers left;
  left.checkpoints = checkpoint_steps(output_dir);
  std::error_code absent;
  const auto is_start = [&](int64_t step) {
    return !start.empty() && fs::equivalent(checkpoint_path(output_dir, step), start, absent);
  };
  const auto at = std::find_if(left.checkpoints.begin(), left.checkpoints.end(), is_start);
  left.resumes_here = at != left.checkpoints.end();
  if (left.resumes_here) left.checkpoints.erase(left.checkpoints.begin(), at + 1);
  const fs::path metrics = fs::path(output_dir) / kMetricsName;
  left.has_metrics = !left.resumes_here && fs::exists(metrics, absent) && fs::file_size(metrics, absent) > 0;
  return left;
}

Status check_leftovers(const RunOptions& run, const Leftovers& left) {
  if (left.checkpoints.empty() || run.overwrite) return {};
  return error(
      Code::kInvalidArgument,
      "run.output_dir {} holds checkpoints of {} ({}); give run.resume=latest to go on from them, another "
      "run.output_dir, or run.overwrite=true to delete them",
      run.output_dir, left.resumes_here ? "steps after the one to resume from" : "an earlier run",
      names_of(run.output_dir, left.checkpoints));
}

Result<std::string> remove_leftovers(const std::string& output_dir, const Leftovers& left) {
  std::string lines;
  for (const int64_t step : left.checkpoints) {
    std::error_code failed;
    fs::remove_all(checkpoint_path(output_dir, step), failed);
    if (failed) {
      return error(Code::kIo, "cannot delete {}: {}", checkpoint_path(output_dir, step), failed.message());
    }
  }
  if (!left.checkpoints.empty()) {
    lines += fmt::format("  deleted     {} of an earlier run in {} (run.overwrite)\n",
                         names_of(output_dir, left.checkpoints), output_dir);
  }
  if (left.has_metrics) {
    lines += fmt::format("  replaced    {} of an earlier run in {}, which left no checkpoint to go on from\n",
                         kMetricsName, output_dir);
  }
  return lines;
}

}  // namespace tern::trainer
