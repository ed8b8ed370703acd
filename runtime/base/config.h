// Settings: one table (settings.def), read from the environment once, passed on as a value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tern {

enum class SettingKind : uint8_t { kText, kSecret, kChoice, kCount, kSeconds, kBytes };

namespace setting_type {
using kText = std::string;
using kSecret = std::string;
using kChoice = std::string;
using kCount = int;
using kSeconds = Seconds;
using kBytes = uint64_t;
}  // namespace setting_type

/// Every setting as a field (settings.def lists them with their meaning). Copyable; a new one holds the
/// defaults.
class Config {
 public:
  Config();

  using Variable = std::pair<std::string, std::string>;  ///< name, value

  /// The defaults changed by the process's TERN_* variables. Call once at the start of a program and pass the
  /// value on.
  ///
  /// Also sets the log level to what it read. A TERN_* variable that no row names is a logged warning with
  /// the nearest known name. Errors: kInvalidArgument, naming the variable, its value and what is allowed.
  static Result<Config> from_environment();

  /// The same from given variables, an empty value being the default; `warnings` receives a sentence per
  /// unknown TERN_* name. Other names are ignored.
  static Result<Config> from_variables(std::span<const Variable> variables,
                                       std::vector<std::string>& warnings);

  /// Sets one row by its environment name or field name, as command lines and JSON files do; an empty value
  /// sets the default.
  /// Errors: kNotFound (no such setting; names the nearest), kInvalidArgument (value not allowed; nothing
  /// changed).
  Status set(std::string_view setting, std::string_view value);

  bool operator==(const Config&) const = default;

#define TERN_SETTING(field, variable, kind, initial, allowed, doc) setting_type::kind field = {};
#include "runtime/base/settings.def"
#undef TERN_SETTING
};

/// A row of the table.
struct Setting {
  std::string_view variable;  ///< "TERN_TIMEOUT"
  std::string_view field;     ///< "timeout"
  SettingKind kind;
  std::string_view initial;  ///< the default, as text
  std::string_view allowed;
  std::string_view doc;
  std::variant<std::string Config::*, int Config::*, Seconds Config::*, uint64_t Config::*> member;

  /// The value that `config` holds, as text that Config::set() reads back; a secret shows only whether it is
  /// set.
  std::string text_in(const Config& config) const;
};

inline constexpr auto kSettings = std::to_array<Setting>({
#define TERN_SETTING(field, variable, kind, initial, allowed, doc) \
  {variable, #field, SettingKind::kind, initial, allowed, doc, &Config::field},
#include "runtime/base/settings.def"
#undef TERN_SETTING
});

/// A variable that belongs to somebody else (RANK, MASTER_ADDR, OMPI_*, SLURM_*); nothing when unset. Tern's
/// own settings come from Config. Must not run while another thread changes the environment.
std::optional<std::string> environment(std::string_view variable);
/// All variables of this process as NAME=value, for a program that starts others. The same rule.
std::vector<std::string> environment_variables();

}  // namespace tern
