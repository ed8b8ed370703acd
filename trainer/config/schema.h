// A configuration described by a table: every key that may appear, its type, default and range.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tern::trainer {

enum class KeyKind : uint8_t {
  kFlag,     ///< true or false
  kInteger,  ///< a whole number within `allowed` (5e8 counts as whole)
  kNumber,   ///< a number within `allowed`
  kNumbers,  ///< a list of as many numbers as the default has, each within `allowed`
  kText,
  kChoice,  ///< one of the words of `allowed`, separated by "|"; a word is a text, or a number or flag as
            ///< JSON writes it
  kAny,     ///< anything; accepted because other programs write it, without effect
};

/// One row: all that there is to say about a key.
struct Key {
  std::string_view path;  ///< "deepspeed.zero_optimization.stage"
  KeyKind kind;
  std::string_view initial;  ///< the default as JSON; "null": none, the key is optional
  std::string_view allowed;  ///< "least..most", choices, or prose for texts
  std::string_view doc;
};

/// Values by key path, checked against a table.
class ConfigValues {
 public:
  /// True when the value is neither absent nor null (a default counts as a value).
  bool has(std::string_view path) const;
  /// True when the input set the key.
  bool given(std::string_view path) const;
  bool flag(std::string_view path) const;
  int64_t integer(std::string_view path) const;
  double number(std::string_view path) const;
  std::string text(std::string_view path) const;
  double number_at(std::string_view path, size_t idx) const;

  /// All values as one nested object, defaults included: the resolved configuration.
  nlohmann::json nested() const;

 private:
  friend Result<ConfigValues> resolve(const nlohmann::json& input, std::span<const Key> keys);
  struct Value {
    nlohmann::json json;
    bool given = false;
  };
  const nlohmann::json& at(std::string_view path) const;
  std::map<std::string, Value, std::less<>> values_;
};

/// Checks `input` against the table and fills in the defaults; null means the default.
///
/// Errors: kInvalidArgument, one sentence: an unknown key with its full path and the nearest known one; a
/// value of the wrong type or out of range with the value and what is allowed.
Result<ConfigValues> resolve(const nlohmann::json& input, std::span<const Key> keys);

/// Sets `path=value` in `input`, objects made as needed; the value is JSON, or a text when it is not.
/// Errors: kInvalidArgument (no "=", an empty key, or a part of the path that is not an object).
Status set_value(nlohmann::json& input, std::string_view assignment);

/// The table as Markdown rows: key, type, default, allowed, meaning.
std::string key_table(std::span<const Key> keys);

}  // namespace tern::trainer
