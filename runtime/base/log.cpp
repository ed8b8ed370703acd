#include "runtime/base/log.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>

namespace tern {
namespace {

constexpr int kUnsetRank = -1;

std::atomic<LogLevel> g_level = LogLevel::kWarn;  // relaxed everywhere: it orders nothing
std::atomic<int> g_process_rank = kUnsetRank;
thread_local int t_rank = kUnsetRank;

// The sink and the mutex that serialises its calls; never destroyed, because threads may log while the
// process ends.
struct Output {
  std::mutex mutex;
  LogSink sink;
};
Output& output() {
  static auto* const instance = new Output;
  return *instance;
}

// One write() per line keeps lines of several processes that share a terminal whole.
void write_to_stderr(const LogRecord& record) {
  const std::string line = format_log_line(record) + "\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t n_written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (n_written <= 0) return;  // nowhere is left to report it
    rest.remove_prefix(static_cast<size_t>(n_written));
  }
}

}  // namespace

Result<LogLevel> parse_log_level(std::string_view text) {
  const auto* const found = std::find(kLogLevelNames.begin(), kLogLevelNames.end(), text);
  if (found != kLogLevelNames.end()) return static_cast<LogLevel>(found - kLogLevelNames.begin());
  return error(Code::kInvalidArgument, "unknown log level \"{}\"; allowed: {}", text,
               fmt::join(kLogLevelNames, ", "));
}

std::string format_log_line(const LogRecord& record) {
  const std::string rank = record.rank == kUnsetRank ? "-" : fmt::format("{}", record.rank);
  std::string line =
      fmt::format("tern {} {} {}: {}", rank, name(record.level), record.component, record.message);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

LogSink set_log_sink(LogSink sink) {
  const std::lock_guard lock(output().mutex);
  std::swap(output().sink, sink);
  return sink;
}

void set_log_level(LogLevel level) {
  g_level.store(level, std::memory_order_relaxed);
}
LogLevel log_level() {
  return g_level.load(std::memory_order_relaxed);
}
void set_thread_log_rank(int rank) {
  t_rank = rank;
}
void set_process_log_rank(int rank) {
  g_process_rank.store(rank, std::memory_order_relaxed);
}

void write_log(LogLevel level, std::string_view component, std::string_view message) {
  const int rank = t_rank != kUnsetRank ? t_rank : g_process_rank.load(std::memory_order_relaxed);
  const LogRecord record = {level, component, rank, message};
  const std::lock_guard lock(output().mutex);
  if (output().sink) {
    output().sink(record);
  } else {
    write_to_stderr(record);
  }
}

}  // namespace tern
