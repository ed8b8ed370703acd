// Small JSON files read key by key, with one sentence about the first thing that is wrong.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/nearest.h"
#include "runtime/base/status.h"

namespace tern {

struct JsonRange {
  double least, most;
};

/// One object of a file. What is missing, unknown, of another kind or out of range makes `wrong` an error
/// (kInvalidArgument) naming the key's path, its value and what is allowed; reading goes on with zeros.
class JsonReader {
  using Json = nlohmann::json;

 public:
  /// path: of the object in its file, "" at the top. origin: what the file is, for sentences. wrong: set
  /// once. All of them outlive the reader, but for the path.
  JsonReader(const Json& object, std::string path, std::string_view origin, Status& wrong)
      : object_(object), path_(std::move(path)), origin_(origin), wrong_(wrong) {
    if (!object.is_object()) refuse("", object, "an object");
  }

  /// Says which keys there may be.
  void allow(const std::vector<std::string_view>& keys) {
    if (!object_.is_object()) return;
    for (const auto& [key, value] : object_.items()) {
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      say(fmt::format("{} has no key \"{}\"; {}allowed: {}", path_.empty() ? "it" : path_, key,
                      did_you_mean(key, keys), fmt::join(keys, ", ")));
    }
  }
  bool has(std::string_view key) const { return object_.is_object() && object_.contains(key); }
  /// initial: what it is when the key is absent; null: it must be there. This holds for the others too.
  double number(std::string_view key, JsonRange range, const double* initial = nullptr) {
    const Json* value = find(key, initial != nullptr);
    if (value == nullptr) return initial != nullptr ? *initial : 0;
    const bool good =
        value->is_number() && value->get<double>() >= range.least && value->get<double>() <= range.most;
    if (!good) refuse(key, *value, fmt::format("a number from {} to {}", range.least, range.most));
    return good ? value->get<double>() : 0;
  }
  int whole(std::string_view key, JsonRange range, const double* initial = nullptr) {
    const double value = number(key, range, initial);
    if (value != static_cast<int>(value)) refuse(key, object_.at(std::string(key)), "a whole number");
    return static_cast<int>(value);
  }
  bool flag(std::string_view key) {
    const Json* value = find(key, true);
    if (value != nullptr && !value->is_boolean()) refuse(key, *value, "true or false");
    return value != nullptr && value->is_boolean() && value->get<bool>();
  }
  std::string text(std::string_view key, const char* initial = nullptr) {
    const Json* value = find(key, initial != nullptr);
    if (value == nullptr) return initial != nullptr ? initial : "";
    const bool good = value->is_string() && !value->get<std::string>().empty();
    if (!good) refuse(key, *value, "a text that is not empty");
    return good ? value->get<std::string>() : "";
  }
  /// One of two words; absent: the first.
  std::string choice(std::string_view key, const char* first, const char* second) {
    std::string word = text(key, first);
    if (word != first && word != second) refuse(key, Json(word), fmt::format("{} or {}", first, second));
    return word;
  }
  /// The object at a key.
  JsonReader in(std::string_view key) {
    static const Json kNone;
    const Json* value = find(key, false);
    return {value != nullptr ? *value : kNone, full(key), origin_, wrong_};
  }
  /// visit(reader) for each element of a list.
  template <class Visit>
  void each(std::string_view key, Visit visit) {
    const Json* value = find(key, false);
    if (value == nullptr) return;
    if (!value->is_array() || value->empty()) return refuse(key, *value, "a list that is not empty");
    for (size_t i = 0; i < value->size(); ++i)
      visit(JsonReader((*value)[i], fmt::format("{}[{}]", full(key), i), origin_, wrong_));
  }

 private:
  std::string full(std::string_view key) const {
    if (key.empty()) return path_;
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }
  const Json* find(std::string_view key, bool optional) {
    if (!object_.is_object()) return nullptr;
    const auto at = object_.find(key);
    if (at != object_.end()) return &*at;
    if (!optional) say(fmt::format("{} is missing", full(key)));
    return nullptr;
  }
  void refuse(std::string_view key, const Json& value, std::string_view allowed) {
    if (wrong_.ok())
      say(fmt::format("{} is {}; allowed: {}", full(key).empty() ? "it" : full(key),
                      value.dump(-1, ' ', true, Json::error_handler_t::replace), allowed));
  }
  void say(std::string_view what) {
    if (wrong_.ok()) wrong_ = error(Code::kInvalidArgument, "{}: {}", origin_, what);
  }

  const Json& object_;
  std::string path_;
  std::string_view origin_;
  Status& wrong_;
};

}  // namespace tern
