#include "runtime/base/status.h"

#include <system_error>

#include <array>

namespace tern {

std::string_view name(Code code) {
  static constexpr std::array<std::string_view, 12> kNames = {
      "ok",      "invalid argument", "unsupported", "not found", "peer lost",     "timeout",
      "aborted", "mismatch",         "corrupt",     "io",        "out of memory", "internal"};
  const auto idx = static_cast<size_t>(code);
  return idx < kNames.size() ? kNames[idx] : "unknown";
}

std::string Error::to_string() const {
  return rank >= 0 ? fmt::format("{} (rank {}): {}", name(code), rank, message)
                   : fmt::format("{}: {}", name(code), message);
}

void check_failed(const char* expression, const char* file, int line) {
  throw CheckFailure(fmt::format("{}:{}: broken invariant: {}", file, line, expression));
}

std::string system_text(int code) {
  return std::generic_category().message(code);
}

}  // namespace tern
