#include "runtime/codec/codec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace tern {
namespace {

std::string known_codecs() {
  std::vector<std::string_view> names;
  for (const CodecInfo& row : codecs()) names.push_back(row.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string known_options(const CodecInfo& row) {
  if (row.options.empty()) return "it has no options";
  std::string text = "options:";
  for (const CodecOption& option : row.options) {
    text += fmt::format(" {} ({})", option.name, fmt::join(option.allowed, ", "));
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
  const std::string_view digits = text.substr(equals + 1);
  int value = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_number = failure == std::errc() && end == digits.data() + digits.size();
  if (!is_number ||
      std::find(option->allowed.begin(), option->allowed.end(), value) == option->allowed.end()) {
    return error(Code::kInvalidArgument, "codec {}: {} = \"{}\" is not allowed; allowed: {}", row.name, key,
                 digits, fmt::join(option->allowed, ", "));
  }
  spec.*option->member = value;
  return {};
}

}  // namespace

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
  for (const CodecOption& option : row.options) {
    text +=
        fmt::format("{}{}={}", &option == row.options.data() ? ':' : ',', option.name, spec.*option.member);
  }
  return text;
}

}  // namespace tern
