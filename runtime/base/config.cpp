#include "runtime/base/config.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "runtime/base/log.h"
#include "runtime/base/nearest.h"
#include "runtime/base/size.h"

namespace tern {
namespace {

constexpr std::string_view kPrefix = "TERN_";

// "least..most" cut in two.
std::pair<std::string_view, std::string_view> range_of(const Setting& row) {
  const size_t dots = row.allowed.find("..");
  TERN_CHECK(dots != std::string_view::npos);
  return {row.allowed.substr(0, dots), row.allowed.substr(dots + 2)};
}

Error not_allowed(const Setting& row, std::string_view value) {
  const std::string_view shown = row.kind == SettingKind::kSecret ? "(hidden)" : value;
  return error(Code::kInvalidArgument, "{}=\"{}\" is not allowed; allowed: {}", row.variable, shown,
               row.allowed);
}

std::optional<double> parse_number(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc() || rest != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<double> parse_in_range(const Setting& row, std::string_view value) {
  const auto [least, most] = range_of(row);
  const std::optional<double> number = parse_number(value);
  if (!number || *number < *parse_number(least) || *number > *parse_number(most)) return std::nullopt;
  return number;
}

Status assign(const Setting& row, std::string_view value, std::string& out) {
  if (row.kind == SettingKind::kChoice) {
    std::string_view rest = row.allowed;
    bool found = false;
    while (!found && !rest.empty()) {
      const size_t bar = std::min(rest.find('|'), rest.size());
      found = rest.substr(0, bar) == value;
      rest.remove_prefix(std::min(bar + 1, rest.size()));
    }
    if (!found) return not_allowed(row, value);
  }
  out = value;
  return {};
}

Status assign(const Setting& row, std::string_view value, int& out) {
  const std::optional<double> number = parse_in_range(row, value);
  if (!number || *number != std::floor(*number)) return not_allowed(row, value);
  out = static_cast<int>(*number);
  return {};
}

Status assign(const Setting& row, std::string_view value, Seconds& out) {
  const std::optional<double> number = parse_in_range(row, value);
  if (!number) return not_allowed(row, value);
  out = Seconds(*number);
  return {};
}

Status assign(const Setting& row, std::string_view value, uint64_t& out) {
  const auto [least, most] = range_of(row);
  const Result<uint64_t> size = parse_size(value);
  if (!size.ok() || *size < *parse_size(least) || *size > *parse_size(most)) return not_allowed(row, value);
  out = *size;
  return {};
}

Status assign(const Setting& row, std::string_view value, Config& config) {
  // An empty text is how scripts and batch systems write "not set".
  if (value.empty()) value = row.initial;
  return std::visit([&](auto member) { return assign(row, value, config.*member); }, row.member);
}

const Setting* find(std::string_view setting) {
  const auto* const row = std::find_if(kSettings.begin(), kSettings.end(), [&](const Setting& s) {
    return s.variable == setting || s.field == setting;
  });
  return row == kSettings.end() ? nullptr : row;
}

// The prefix, which no variable lacks, says nothing about how near a name is.
std::string near_settings(std::string_view wrong) {
  const std::string_view prefix = wrong.starts_with(kPrefix) ? kPrefix : "";
  std::vector<std::string_view> names;
  names.reserve(kSettings.size());
  for (const Setting& row : kSettings)
    names.push_back(prefix.empty() ? row.field : row.variable.substr(prefix.size()));
  const std::string_view near = nearest(wrong.substr(prefix.size()), names);
  if (near.empty()) return "tern info lists the settings";
  return fmt::format("the nearest is {}{}", prefix, near);
}

}  // namespace

Config::Config() {
  for (const Setting& row : kSettings) TERN_CHECK(assign(row, row.initial, *this).ok());
}

Status Config::set(std::string_view setting, std::string_view value) {
  const Setting* const row = find(setting);
  if (row != nullptr) return assign(*row, value, *this);
  return tern::error(Code::kNotFound, "there is no setting \"{}\"; {}", setting, near_settings(setting));
}

Result<Config> Config::from_variables(std::span<const Variable> variables,
                                      std::vector<std::string>& warnings) {
  Config config;
  for (const auto& [name, value] : variables) {
    if (!name.starts_with(kPrefix)) continue;
    if (const Setting* const row = find(name); row != nullptr) {
      TERN_TRY(assign(*row, value, config));
    } else {
      warnings.push_back(
          fmt::format("{} is not a setting of Tern and is ignored; {}", name, near_settings(name)));
    }
  }
  return config;
}

Result<Config> Config::from_environment() {
  std::vector<Variable> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = std::min(text.find('='), text.size());
    variables.emplace_back(text.substr(0, equals), text.substr(std::min(equals + 1, text.size())));
  }
  std::vector<std::string> warnings;
  TERN_ASSIGN(const Config config, from_variables(variables, warnings));
  TERN_ASSIGN(const LogLevel level, parse_log_level(config.log));
  set_log_level(level);
  for (const std::string& warning : warnings) log_warn("config", "{}", warning);
  return config;
}

std::string Setting::text_in(const Config& config) const {
  if (kind == SettingKind::kSecret)
    return (config.*std::get<std::string Config::*>(member)).empty() ? "" : "(set)";
  struct Printer {
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(int count) const { return fmt::format("{}", count); }
    std::string operator()(Seconds seconds) const { return fmt::format("{}", seconds.count()); }
    std::string operator()(uint64_t n_bytes) const { return format_size(n_bytes); }
  };
  return std::visit([&](auto pointer) { return Printer()(config.*pointer); }, member);
}

std::vector<std::string> environment_variables() {
  std::vector<std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) variables.emplace_back(*entry);
  return variables;
}

std::optional<std::string> environment(std::string_view variable) {
  const char* const value = std::getenv(std::string(variable).c_str());  // NOLINT(concurrency-mt-unsafe)
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

}  // namespace tern
