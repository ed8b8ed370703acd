// Errors as values: what a correct caller must handle comes back as Status or Result<T>; bugs throw
// (TERN_CHECK).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace tern {

enum class Code : uint8_t {
  kOk,
  kInvalidArgument,  ///< the caller passed something that is not allowed; nothing was sent
  kUnsupported,      ///< allowed in principle, not by this build, dtype, codec or machine
  kNotFound,         ///< a file, a name or a key is missing
  kPeerLost,         ///< another rank died or its link broke; `rank` names it
  kTimeout,          ///< a deadline passed
  kAborted,          ///< this or another rank called abort()
  kMismatch,         ///< ranks called different collectives, counts, types or codecs
  kCorrupt,          ///< bytes that arrived or were read are not what they must be
  kIo,               ///< the operating system refused (file, socket, memory map)
  kOutOfMemory,
  kInternal,  ///< a broken invariant inside Tern
};

std::string_view name(Code code);

/// What went wrong: a code for programs, one sentence with the values for people, and the rank at fault (-1:
/// none).
struct Error {
  Code code = Code::kInternal;
  std::string message;
  int rank = -1;

  std::string to_string() const;
};

/// Builds an Error from a format string: `error(Code::kTimeout, "rank {} did not come within {} s", r, s)`.
template <class... Args>
Error error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...), -1};
}

/// The same, naming the rank at fault.
template <class... Args>
Error error_at(int rank, Code code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...), rank};
}

/// Success or an Error. Cheap when it is a success (no allocation).
class [[nodiscard]] Status {
 public:
  Status() = default;
  // Implicit, so that `return error(...)` reads well.
  Status(Error e) : error_(std::move(e)) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

/// A value or an Error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error e) : v_(std::move(e)) {}      // NOLINT(google-explicit-constructor)
  bool ok() const { return v_.index() == 0; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return std::get<1>(v_); }
  Status status() const { return ok() ? Status() : Status(error()); }
  T& value() & { return std::get<0>(v_); }
  const T& value() const& { return std::get<0>(v_); }
  T&& value() && { return std::get<0>(std::move(v_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }

 private:
  std::variant<T, Error> v_;
};

/// What the system says of an errno value. Unlike strerror(), from any thread.
std::string system_text(int code);

/// Thrown for bugs only (a broken invariant), never for input.
class CheckFailure : public std::logic_error {
  using std::logic_error::logic_error;
};
[[noreturn]] void check_failed(const char* expression, const char* file, int line);

}  // namespace tern

#define TERN_CHECK(expression) \
  ((expression) ? static_cast<void>(0) : ::tern::check_failed(#expression, __FILE__, __LINE__))

#define TERN_CONCAT_INNER(a, b) a##b
#define TERN_CONCAT(a, b) TERN_CONCAT_INNER(a, b)

/// Returns the error of a Status (or Result) expression to the caller.
#define TERN_TRY(expression)                                       \
  if (auto tern_try_ = (expression); !tern_try_.ok()) [[unlikely]] \
  return tern_try_.error()

/// TERN_ASSIGN(auto x, f()): takes the value of a Result, or returns its error to the caller.
#define TERN_ASSIGN(target, expression) \
  TERN_ASSIGN_INNER(target, expression, TERN_CONCAT(tern_result_, __LINE__))
// NOLINTBEGIN(bugprone-macro-parentheses): `target` may declare a variable, and `result` names one.
#define TERN_ASSIGN_INNER(target, expression, result) \
  auto result = (expression);                         \
  if (!result.ok()) [[unlikely]]                      \
    return result.error();                            \
  target = std::move(result).value()
// NOLINTEND(bugprone-macro-parentheses)
