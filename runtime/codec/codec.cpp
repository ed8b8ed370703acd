#include "runtime/codec/codec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace tern {
namespace {

std::string known_codecs() {
  std::vector<std::string_view> names;
  for (const CodecInfo& row : codecs()) names.push_back(row.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string allowed_values(const CodecOption& option) {
  std::vector<std::string> values;
  for (size_t i = 0; i < option.allowed.size(); ++i) values.push_back(value_text(option, i));
  return fmt::format("{}", fmt::join(values, ", "));
}

/// Of the value in `spec`, or of the first one when it is not allowed.
size_t index_of(const CodecOption& option, const CodecSpec& spec) {
  const auto found = std::find(option.allowed.begin(), option.allowed.end(), spec.*option.member);
  return found == option.allowed.end() ? 0 : static_cast<size_t>(found - option.allowed.begin());
}

std::string known_options(const CodecInfo& row) {
  if (row.options.empty()) return "it has no options";
  std::string text = "options:";
  for (const CodecOption& option : row.options) {
    text += fmt::format(" {} ({})", option.name, allowed_values(option));
  }
  return text;
}

/// Reads one "key=value" into spec.
Status parse_option(const CodecInfo& row, std::string_view text, CodecSpec& spec) {
  const size_t equals = text.find('=');
  const std::string_view key = text.substr(0, equals);
  const auto option = std::find_if(row.options.begin(), row.options.end(),
                                   [&](const CodecOption& candidate) { return candidate.name == key; });
  if (equals == std::string_view::npos || option == row.options.end()) {
    return error(Code::kInvalidArgument, "codec {} cannot read \"{}\" (key=value); {}", row.name, text,
                 known_options(row));
  }
  const std::string_view value = text.substr(equals + 1);
  for (size_t i = 0; i < option->allowed.size(); ++i) {
    if (value != value_text(*option, i)) continue;
    spec.*option->member = option->allowed[i];
    return {};
  }
  return error(Code::kInvalidArgument, "codec {}: {} = \"{}\" is not allowed; allowed: {}", row.name, key,
               value, allowed_values(*option));
}

}  // namespace

std::string value_text(const CodecOption& option, size_t idx) {
  return option.words.empty() ? fmt::format("{}", option.allowed[idx]) : std::string(option.words[idx]);
}

Result<CodecSpec> parse_codec(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto all = codecs();
  const auto row = std::find_if(all.begin(), all.end(), [&](const CodecInfo& r) { return r.name == name; });
  if (row == all.end()) {
    return error(Code::kInvalidArgument, "unknown codec \"{}\"; known: {}", name, known_codecs());
  }
  CodecSpec spec{.id = row->id};
  if (colon == std::string_view::npos) return spec;
  std::string_view rest = text.substr(colon + 1);
  while (true) {
    const size_t comma = rest.find(',');
    TERN_TRY(parse_option(*row, rest.substr(0, comma), spec));
    if (comma == std::string_view::npos) return spec;
    rest = rest.substr(comma + 1);
  }
}

std::string to_string(const CodecSpec& spec) {
  const CodecInfo& row = info(spec.id);
  std::string text(row.name);
  char separator = ':';
  for (const CodecOption& option : row.options) {
    if (!option.words.empty() && spec.*option.member == CodecSpec().*option.member) continue;
    text += fmt::format("{}{}={}", separator, option.name, value_text(option, index_of(option, spec)));
    separator = ',';
  }
  return text;
}

std::string encodable_dtypes() {
  std::vector<std::string_view> names;
  for (const DtypeInfo& row : kDtypes)
    if (is_encodable(row.dtype)) names.push_back(row.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Status check_residual(const CodecSpec& spec, bool has_residual) {
  constexpr double kFourBits = 4.5;  // with a scale; q4h has 15 levels
  const CodecInfo& row = info(spec.id);
  if (row.residual == ResidualUse::kMandatory && !has_residual)
    return error(Code::kInvalidArgument, "codec {} is biased and needs a residual, which is not there",
                 row.name);
  if (has_residual && spec.rounding != 0 && row.bits_per_element(spec, sizeof(float)) < kFourBits) {
    return error(
        Code::kInvalidArgument,
        "codec {}: below 4 bits, stochastic rounding and a residual do not go together; leave one out",
        to_string(spec));
  }
  return {};
}

uint16_t option_number(const CodecSpec& spec) {
  size_t number = 0;
  for (const CodecOption& option : info(spec.id).options)
    number = number * option.allowed.size() + index_of(option, spec);
  return static_cast<uint16_t>(number);
}

CodecSpec spec_of(CodecId id, uint16_t option_number) {
  CodecSpec spec{.id = id};
  size_t rest = option_number;
  const auto options = info(id).options;
  for (size_t i = options.size(); i-- > 0; rest /= options[i].allowed.size())
    spec.*options[i].member = options[i].allowed[rest % options[i].allowed.size()];
  return spec;
}

}  // namespace tern
