#include "runtime/topology/cluster_file.h"

#include <nlohmann/json.hpp>

#include "runtime/base/json_reader.h"
#include "runtime/base/json_text.h"

namespace tern {
namespace {

using Json = nlohmann::json;

constexpr int kMaxRanks = 16384;
constexpr double kGiga = 1e9;
constexpr double kMicro = 1e-6;
constexpr double kMaxGbPerS = 1e5;
constexpr double kMaxMicros = 1e7;

ClusterDevice read_device(JsonReader r) {
  constexpr JsonRange kSpeed{1e-3, kMaxGbPerS};
  const double unknown = 0;
  r.allow({"name", "copy_gb_per_s", "reduce_gb_per_s", "encode_gb_per_s", "decode_gb_per_s", "tflops"});
  return {.name = r.text("name"),
          .copy_bytes_per_s = kGiga * r.number("copy_gb_per_s", kSpeed),
          .reduce_bytes_per_s = kGiga * r.number("reduce_gb_per_s", kSpeed),
          .encode_bytes_per_s = kGiga * r.number("encode_gb_per_s", kSpeed),
          .decode_bytes_per_s = kGiga * r.number("decode_gb_per_s", kSpeed),
          .flops = 1e12 * r.number("tflops", {0, 1e6}, &unknown)};
}

ClusterLevel read_level(JsonReader r) {
  const double one = 1;
  r.allow({"name", "size", "link"});
  ClusterLevel level{.name = r.text("name"), .size = r.whole("size", {1, kMaxRanks})};
  JsonReader l = r.in("link");
  l.allow({"name", "count", "gb_per_s", "alpha_us", "duplex", "inside_only"});
  level.link = {.name = l.text("name"),
                .count = l.whole("count", {1, kMaxRanks}, &one),
                .bytes_per_s = kGiga * l.number("gb_per_s", {1e-6, kMaxGbPerS}),
                .alpha = kMicro * l.number("alpha_us", {0, kMaxMicros}),
                .full_duplex = l.choice("duplex", "full", "half") == "full",
                .inside_only = l.flag("inside_only")};
  return level;
}

}  // namespace

Result<Cluster> parse_cluster(std::string_view text, std::string_view origin) {
  TERN_ASSIGN(const Json json, parse_json(text, origin));
  Status wrong;
  const double none = 0;
  const std::string what = fmt::format("cluster {}", origin);
  JsonReader r(json, "", what, wrong);
  r.allow({"name", "source", "ranks", "device", "message_overhead_us", "round_overhead_us", "levels"});
  Cluster cluster;
  cluster.name = r.text("name");
  cluster.source = r.text("source");
  cluster.n_ranks = r.whole("ranks", {1, kMaxRanks});
  cluster.device = read_device(r.in("device"));
  cluster.message_overhead = kMicro * r.number("message_overhead_us", {0, kMaxMicros}, &none);
  cluster.round_overhead = kMicro * r.number("round_overhead_us", {0, kMaxMicros}, &none);
  r.each("levels", [&](const JsonReader& level) { cluster.levels.push_back(read_level(level)); });
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
