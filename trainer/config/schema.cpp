#include "trainer/config/schema.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/base/nearest.h"

namespace tern::trainer {
namespace {

using Json = nlohmann::json;

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (size_t at = text.find(separator); at != std::string_view::npos; at = text.find(separator)) {
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  parts.push_back(text);
  return parts;
}

std::string_view last_part(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

double to_double(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool within(double value, std::string_view allowed) {
  const auto ends = split(allowed, "..");
  return value >= to_double(ends.front()) && value <= to_double(ends.back());
}

bool is_whole(const Json& value) {
  if (value.is_number_integer()) return true;
  return value.is_number_float() && std::nearbyint(value.get<double>()) == value.get<double>() &&
         std::abs(value.get<double>()) < 0x1p53;
}

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr size_t kLongest = 60;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

/// A word of a choice as the value it stands for: a number, a flag, or the word itself.
Json choice(std::string_view word) {
  Json value = Json::parse(word, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? Json(std::string(word)) : value;
}

bool fits(const Key& key, const Json& value) {
  switch (key.kind) {
    case KeyKind::kFlag:
      return value.is_boolean();
    case KeyKind::kInteger:
      return is_whole(value) && within(value.get<double>(), key.allowed);
    case KeyKind::kNumber:
      return value.is_number() && within(value.get<double>(), key.allowed);
    case KeyKind::kNumbers:
      return value.is_array() && value.size() == Json::parse(key.initial).size() &&
             std::all_of(value.begin(), value.end(), [&](const Json& element) {
               return element.is_number() && within(element.get<double>(), key.allowed);
             });
    case KeyKind::kText:
      return value.is_string();
    case KeyKind::kChoice: {
      const auto words = split(key.allowed, "|");
      return std::any_of(words.begin(), words.end(),
                         [&](std::string_view word) { return value == choice(word); });
    }
    case KeyKind::kAny:
      return true;
  }
  return false;
}

std::string allowed_sentence(const Key& key) {
  switch (key.kind) {
    case KeyKind::kFlag:
      return "true or false";
    case KeyKind::kInteger:
      return fmt::format("a whole number in {}", key.allowed);
    case KeyKind::kNumber:
      return fmt::format("a number in {}", key.allowed);
    case KeyKind::kNumbers:
      return fmt::format("a list of {} numbers in {}", Json::parse(key.initial).size(), key.allowed);
    case KeyKind::kText:
      return fmt::format("a text: {}", key.allowed);
    case KeyKind::kChoice:
      return fmt::format("{}", fmt::join(split(key.allowed, "|"), " or "));
    case KeyKind::kAny:
      return "anything";
  }
  return "";
}

std::string_view kind_word(KeyKind kind) {
  switch (kind) {
    case KeyKind::kFlag:
      return "flag";
    case KeyKind::kInteger:
      return "integer";
    case KeyKind::kNumber:
      return "number";
    case KeyKind::kNumbers:
      return "numbers";
    case KeyKind::kText:
      return "text";
    case KeyKind::kChoice:
      return "choice";
    case KeyKind::kAny:
      return "any";
  }
  return "";
}

/// The key or section that stands for `key_path` in the section of `path`: "model" for a top-level name,
/// "model.x" for a path in model. Empty when the key is in another section.
std::string_view beside(std::string_view path, std::string_view key_path) {
  const size_t n_prefix = path.size() - last_part(path).size();  // with its dot
  if (key_path.substr(0, n_prefix) != path.substr(0, n_prefix)) return {};
  return key_path.substr(0, key_path.find('.', n_prefix));
}

/// What a wrong path most likely meant: a typing error in a name of its own section, or the right name in the
/// wrong place. Empty when it is like none.
std::string_view nearest_key(std::string_view path, std::span<const Key> keys) {
  std::string_view best;
  size_t best_distance = std::numeric_limits<size_t>::max();
  const auto consider = [&](std::string_view candidate, size_t penalty) {
    const auto errors = typing_errors(last_part(path), last_part(candidate));
    if (!errors || *errors + penalty >= best_distance) return;
    best = candidate;
    best_distance = *errors + penalty;
  };
  for (const Key& key : keys) {
    const std::string_view neighbour = beside(path, key.path);
    if (!neighbour.empty()) consider(neighbour, 0);
  }
  for (const Key& key : keys) consider(key.path, 1);
  return best;
}

/// What there is where the path looked for something.
std::string neighbours(std::string_view path, std::span<const Key> keys) {
  std::vector<std::string_view> names;
  for (const Key& key : keys) {
    const std::string_view name = beside(path, key.path);
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Error unknown_key(std::string_view path, std::span<const Key> keys) {
  const std::string_view near = nearest_key(path, keys);
  if (!near.empty())
    return error(Code::kInvalidArgument, "unknown key {}; the nearest known key is {}", path, near);
  return error(Code::kInvalidArgument, "unknown key {}; there are {}", path, neighbours(path, keys));
}

/// One walk over the input, row by row of the table.
class Resolver {
 public:
  Resolver(std::span<const Key> keys, std::map<std::string, Json>& found) : keys_(keys), found_(found) {}

  Status walk(const Json& node, const std::string& path) {
    for (const auto& [name, child] : node.items()) {
      const std::string child_path = path.empty() ? name : fmt::format("{}.{}", path, name);
      TERN_TRY(take(child, child_path));
    }
    return {};
  }

 private:
  Status take(const Json& value, const std::string& path) {
    if (const Key* key = find(path)) {
      if (value.is_null()) return {};
      if (!fits(*key, value)) {
        return error(Code::kInvalidArgument, "{} is {}; allowed: {} ({})", path, shown(value),
                     allowed_sentence(*key), key->doc);
      }
      found_[path] = value;
      return {};
    }
    if (!is_section(path)) return unknown_key(path, keys_);
    if (value.is_null()) return {};
    if (!value.is_object()) {
      return error(Code::kInvalidArgument, "{} is {}; allowed: an object with keys such as {}", path,
                   shown(value), first_of_section(path));
    }
    return walk(value, path);
  }

  const Key* find(std::string_view path) const {
    for (const Key& key : keys_) {
      if (key.path == path) return &key;
    }
    return nullptr;
  }
  std::string_view first_of_section(const std::string& path) const {
    const std::string prefix = path + ".";
    for (const Key& key : keys_) {
      if (key.path.substr(0, prefix.size()) == prefix) return key.path;
    }
    return {};
  }
  bool is_section(const std::string& path) const { return !first_of_section(path).empty(); }

  std::span<const Key> keys_;
  std::map<std::string, Json>& found_;
};

}  // namespace

Result<ConfigValues> resolve(const Json& input, std::span<const Key> keys) {
  if (!input.is_object()) {
    return error(Code::kInvalidArgument, "the configuration is {}; it must be an object", shown(input));
  }
  std::map<std::string, Json> found;
  TERN_TRY(Resolver(keys, found).walk(input, ""));
  ConfigValues values;
  for (const Key& key : keys) {
    const auto it = found.find(std::string(key.path));
    const bool given = it != found.end();
    values.values_[std::string(key.path)] = {given ? it->second : Json::parse(key.initial), given};
  }
  return values;
}

const Json& ConfigValues::at(std::string_view path) const {
  const auto it = values_.find(path);
  TERN_CHECK(it != values_.end());
  return it->second.json;
}
bool ConfigValues::has(std::string_view path) const {
  return !at(path).is_null();
}
bool ConfigValues::given(std::string_view path) const {
  at(path);
  return values_.find(path)->second.given;
}
bool ConfigValues::flag(std::string_view path) const {
  return at(path).get<bool>();
}
int64_t ConfigValues::integer(std::string_view path) const {
  const Json& value = at(path);
  return value.is_number_float() ? static_cast<int64_t>(value.get<double>()) : value.get<int64_t>();
}
double ConfigValues::number(std::string_view path) const {
  return at(path).get<double>();
}
std::string ConfigValues::text(std::string_view path) const {
  return at(path).get<std::string>();
}
double ConfigValues::number_at(std::string_view path, size_t idx) const {
  return at(path).at(idx).get<double>();
}

Json ConfigValues::nested() const {
  Json root = Json::object();
  for (const auto& [path, value] : values_) {
    if (value.json.is_null()) continue;
    Json* node = &root;
    for (const std::string_view part : split(path, ".")) node = &(*node)[std::string(part)];
    *node = value.json;
  }
  return root;
}

Status set_value(Json& input, std::string_view assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return error(Code::kInvalidArgument, "--set {} is not of the form key.path=value", assignment);
  }
  const std::string_view path = assignment.substr(0, equals);
  const std::string_view text = assignment.substr(equals + 1);
  Json* node = &input;
  for (const std::string_view part : split(path, ".")) {
    if (part.empty()) return error(Code::kInvalidArgument, "--set {} has an empty key", assignment);
    if (node->is_null()) *node = Json::object();
    if (!node->is_object()) {
      return error(Code::kInvalidArgument, "--set {}: what holds {} is {}, not an object", assignment, part,
                   shown(*node));
    }
    node = &(*node)[std::string(part)];
  }
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  *node = value.is_discarded() ? Json(std::string(text)) : std::move(value);
  return {};
}

std::string key_table(std::span<const Key> keys) {
  std::string table = "| key | type | default | allowed | meaning |\n|---|---|---|---|---|\n";
  for (const Key& key : keys) {
    std::string allowed(key.allowed);
    for (size_t at = allowed.find('|'); at != std::string::npos; at = allowed.find('|', at + 4)) {
      allowed.replace(at, 1, " or ");
    }
    table += fmt::format("| `{}` | {} | {} | {} | {} |\n", key.path, kind_word(key.kind), key.initial,
                         allowed, key.doc);
  }
  return table;
}

}  // namespace tern::trainer
