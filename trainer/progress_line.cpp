#include "trainer/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tern::trainer {
namespace {

std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  constexpr int64_t kHour = 3600;
  if (whole >= kHour) return fmt::format("{}:{:02}:{:02}", whole / kHour, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string bar(double share) {
  constexpr size_t kWidth = 20;
  const auto full = std::min(kWidth, static_cast<size_t>(share * kWidth));
  return fmt::format("[{:=<{}}{: <{}}] ", "", full, "", kWidth - full);
}

}  // namespace

std::string progress_line(const StepRecord& record, const ProgressView& view) {
  const Traffic traffic = record.traffic();
  const double share = static_cast<double>(record.step) / static_cast<double>(view.n_steps);
  const double per_step = view.elapsed_seconds / static_cast<double>(view.n_done_here);
  const auto sent = static_cast<double>(traffic.bytes_on_wire);
  std::string wire;
  if (traffic.bytes_on_wire > 0) {
    wire = fmt::format("  wire {:.2f} MB (1/{:.1f})", sent / 1e6,
                       static_cast<double>(traffic.bytes_dense) / sent);
  }
  const std::string mfu = record.mfu > 0 ? fmt::format("  MFU {:.0f} %", 100 * record.mfu) : std::string();
  std::string line = fmt::format(
      "{}step {}/{}  {:.0f} %  loss {:.3f}  lr {:.1e}  |g| {:.2f}  {:.0f} tok/s{}  comm {:.0f} ms  exposed "
      "{:.0f} %{}  "
      "left {}",
      view.bar ? bar(share) : "", record.step, view.n_steps, 100 * share, record.loss, record.lr,
      record.grad_norm, record.tokens_per_second(), mfu, traffic.comm_seconds * 1e3,
      100 * traffic.exposed_seconds / record.step_seconds, wire,
      clock_text(per_step * static_cast<double>(view.n_steps - record.step)));
  if (!record.skipped.empty()) line += "  SKIPPED: " + record.skipped;
  return line;
}

}  // namespace tern::trainer
