// Log lines: one per message, with level, component and rank, to a sink that the program may replace.
//
// The level, sink and process rank are the process's only mutable globals: a message must be able to leave
// from anywhere without a logger being passed through every call.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "runtime/base/status.h"

namespace tern {

enum class LogLevel : uint8_t { kError, kWarn, kInfo, kDebug, kTrace };
inline constexpr std::array<std::string_view, 5> kLogLevelNames = {"error", "warn", "info", "debug", "trace"};
constexpr std::string_view name(LogLevel level) {
  return kLogLevelNames[static_cast<size_t>(level)];
}
Result<LogLevel> parse_log_level(std::string_view text);

struct LogRecord {
  LogLevel level;
  std::string_view component;  ///< the layer's folder: "transport"
  int rank;                    ///< -1 before the world exists
  std::string_view message;
};

/// The line that the default sink writes: `tern 3 warn transport: message` (no rank: `tern - warn ...`).
std::string format_log_line(const LogRecord& record);

using LogSink = std::function<void(const LogRecord&)>;
/// Replaces where messages go (an empty function restores stderr) and returns the former sink, empty for
/// stderr. Calls of the sink never overlap; it must not log.
LogSink set_log_sink(LogSink sink);

/// Messages above this level are dropped before they are formatted. Starts at kWarn.
void set_log_level(LogLevel level);
LogLevel log_level();

/// The rank shown by this thread's messages; threads that never set one show the process rank.
void set_thread_log_rank(int rank);
void set_process_log_rank(int rank);

/// Passes a formatted message on; log_error() to log_trace() are what callers use.
void write_log(LogLevel level, std::string_view component, std::string_view message);

template <class... Args>
void log_at(LogLevel level, std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  if (level > log_level()) return;
  write_log(level, component, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kError, component, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_warn(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kWarn, component, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_info(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kInfo, component, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_debug(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kDebug, component, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_trace(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kTrace, component, format, std::forward<Args>(args)...);
}

}  // namespace tern
