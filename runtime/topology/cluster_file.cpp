#include "runtime/topology/cluster_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/base/json_text.h"
#include "runtime/base/nearest.h"

namespace tern {
namespace {

using Json = nlohmann::json;

constexpr int kMaxRanks = 16384;
constexpr double kGiga = 1e9;
constexpr double kMicro = 1e-6;
constexpr double kMaxGbPerS = 1e5;
constexpr double kMaxMicros = 1e7;

struct Range {
  double least, most;
};

// One object of the file; remembers the first thing that is wrong.
class Reader {
 public:
  Reader(const Json& object, std::string path, std::string_view origin, Status& wrong)
      : object_(object), path_(std::move(path)), origin_(origin), wrong_(wrong) {
    if (!object.is_object()) refuse("", object, "an object");
  }

  void allow(std::initializer_list<std::string_view> keys) {
    if (!object_.is_object()) return;
    for (const auto& [key, value] : object_.items()) {
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      const std::vector<std::string_view> known(keys);
      say(fmt::format("{} has no key \"{}\"; did you mean \"{}\"? Allowed: {}", path_.empty() ? "it" : path_,
                      key, nearest(key, known), fmt::join(known, ", ")));
    }
  }
  double number(std::string_view key, Range range, const double* initial = nullptr) {
    const Json* value = find(key, initial != nullptr);
    if (value == nullptr) return initial != nullptr ? *initial : 0;
    const bool good =
        value->is_number() && value->get<double>() >= range.least && value->get<double>() <= range.most;
    if (!good) refuse(key, *value, fmt::format("a number from {} to {}", range.least, range.most));
    return good ? value->get<double>() : 0;
  }
  int whole(std::string_view key, Range range, const double* initial = nullptr) {
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
  bool is_full_duplex() {
    const std::string duplex = text("duplex", "full");
    if (duplex != "full" && duplex != "half") refuse("duplex", Json(duplex), "full or half");
    return duplex != "half";
  }
  Reader in(std::string_view key) {
    static const Json kNone;
    const Json* value = find(key, false);
    return {value != nullptr ? *value : kNone, full(key), origin_, wrong_};
  }
  template <class Visit>
  void each(std::string_view key, Visit visit) {
    const Json* value = find(key, false);
    if (value == nullptr) return;
    if (!value->is_array() || value->empty()) return refuse(key, *value, "a list that is not empty");
    for (size_t i = 0; i < value->size(); ++i)
      visit(Reader((*value)[i], fmt::format("{}[{}]", full(key), i), origin_, wrong_));
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
    if (wrong_.ok()) wrong_ = error(Code::kInvalidArgument, "cluster {}: {}", origin_, what);
  }

  const Json& object_;
  std::string path_;
  std::string_view origin_;
  Status& wrong_;
};

ClusterDevice read_device(Reader r) {
  constexpr Range kSpeed{1e-3, kMaxGbPerS};
  const double unknown = 0;
  r.allow({"name", "copy_gb_per_s", "reduce_gb_per_s", "encode_gb_per_s", "decode_gb_per_s", "tflops"});
  return {.name = r.text("name"),
          .copy_bytes_per_s = kGiga * r.number("copy_gb_per_s", kSpeed),
          .reduce_bytes_per_s = kGiga * r.number("reduce_gb_per_s", kSpeed),
          .encode_bytes_per_s = kGiga * r.number("encode_gb_per_s", kSpeed),
          .decode_bytes_per_s = kGiga * r.number("decode_gb_per_s", kSpeed),
          .flops = 1e12 * r.number("tflops", {0, 1e6}, &unknown)};
}

ClusterLevel read_level(Reader r) {
  const double one = 1;
  r.allow({"name", "size", "link"});
  ClusterLevel level{.name = r.text("name"), .size = r.whole("size", {1, kMaxRanks})};
  Reader l = r.in("link");
  l.allow({"name", "count", "gb_per_s", "alpha_us", "duplex", "inside_only"});
  level.link = {.name = l.text("name"),
                .count = l.whole("count", {1, kMaxRanks}, &one),
                .bytes_per_s = kGiga * l.number("gb_per_s", {1e-6, kMaxGbPerS}),
                .alpha = kMicro * l.number("alpha_us", {0, kMaxMicros}),
                .full_duplex = l.is_full_duplex(),
                .inside_only = l.flag("inside_only")};
  return level;
}

}  // namespace

Result<Cluster> parse_cluster(std::string_view text, std::string_view origin) {
  TERN_ASSIGN(const Json json, parse_json(text, origin));
  Status wrong;
  const double none = 0;
  Reader r(json, "", origin, wrong);
  r.allow({"name", "source", "ranks", "device", "message_overhead_us", "round_overhead_us", "levels"});
  Cluster cluster;
  cluster.name = r.text("name");
  cluster.source = r.text("source");
  cluster.n_ranks = r.whole("ranks", {1, kMaxRanks});
  cluster.device = read_device(r.in("device"));
  cluster.message_overhead = kMicro * r.number("message_overhead_us", {0, kMaxMicros}, &none);
  cluster.round_overhead = kMicro * r.number("round_overhead_us", {0, kMaxMicros}, &none);
  r.each("levels", [&](const Reader& level) { cluster.levels.push_back(read_level(level)); });
  TERN_TRY(wrong);
  if (const Status status = cluster.prepare(); !status.ok())
    return error(Code::kInvalidArgument, "cluster {}: {}", origin, status.error().message);
  return cluster;
}

Result<Cluster> read_cluster(const std::string& path) {
  TERN_ASSIGN(const std::string text, read_text_file(path));
  return parse_cluster(text, path);
}

}  // namespace tern
