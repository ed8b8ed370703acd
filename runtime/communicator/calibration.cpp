#include "runtime/communicator/calibration.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/base/json_reader.h"
#include "runtime/base/json_text.h"

namespace tern {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiga = 1e9;
constexpr double kMicro = 1e-6;
constexpr JsonRange kGbPerS{1e-6, 1e5};
constexpr JsonRange kMicros{1e-3, 1e7};

double beta_at(JsonReader& r, std::string_view key, double initial) {
  const double gb_per_s = 1 / (initial * kGiga);
  const double read = r.number(key, kGbPerS, &gb_per_s);
  return read == gb_per_s || read <= 0 ? initial : 1 / (read * kGiga);
}

void read_link(JsonReader r, Link& link) {
  r.allow({"alpha_us", "gb_per_s"});
  const double alpha_us = link.alpha / kMicro;
  const double read = r.number("alpha_us", kMicros, &alpha_us);
  if (read != alpha_us) link.alpha = read * kMicro;
  link.beta = beta_at(r, "gb_per_s", link.beta);
}

void read_codecs(JsonReader r, CodecSpeeds& speeds) {
  std::vector<std::string_view> names;
  for (const CodecInfo& row : codecs())
    if (row.id != CodecId::kNone) names.push_back(row.name);
  r.allow(names);
  for (const std::string_view name : names) {
    if (!r.has(name)) continue;
    JsonReader row = r.in(name);
    row.allow({"encode_gb_per_s", "decode_gb_per_s"});
    CodecSpeed& speed = speeds[static_cast<size_t>(parse_codec(name)->id)];
    speed.encode_beta = beta_at(row, "encode_gb_per_s", speed.encode_beta);
    speed.decode_beta = beta_at(row, "decode_gb_per_s", speed.decode_beta);
  }
}

Json json_of(const CodecSpeeds& speeds) {
  Json json;
  for (const CodecInfo& row : codecs()) {
    if (row.id == CodecId::kNone) continue;
    const CodecSpeed& speed = speeds[static_cast<size_t>(row.id)];
    json[std::string(row.name)] = {{"encode_gb_per_s", 1 / (speed.encode_beta * kGiga)},
                                   {"decode_gb_per_s", 1 / (speed.decode_beta * kGiga)}};
  }
  return json;
}

Json json_of(const Link& link) {
  return {{"alpha_us", link.alpha / kMicro}, {"gb_per_s", 1 / (link.beta * kGiga)}};
}

}  // namespace

Calibration built_in_calibration() {
  CodecSpeeds speeds;
  for (const CodecInfo& row : codecs()) speeds.push_back(row.speed);
  return {.shared_memory = {.alpha = 0.15e-6, .beta = 1 / 14e9, .receiver_reads = true},
          .loopback = {.alpha = 12e-6, .beta = 1 / 2.5e9},
          .network = {.alpha = 25e-6, .beta = 1 / 1.2e9},
          .copy_beta = 1 / 14e9,
          .reduce_beta = 1 / 12e9,
          .far = 2.2,
          .codecs = std::move(speeds)};
}

Result<Calibration> parse_calibration(std::string_view text, std::string_view origin) {
  TERN_ASSIGN(const nlohmann::json json, parse_json(text, origin));
  Calibration c = built_in_calibration();
  Status wrong;
  const std::string what = fmt::format("calibration {}", origin);
  JsonReader r(json, "", what, wrong);
  r.allow({"shared_memory", "loopback", "network", "copy_gb_per_s", "reduce_gb_per_s", "far", "codecs"});
  if (json.contains("shared_memory")) read_link(r.in("shared_memory"), c.shared_memory);
  if (json.contains("loopback")) read_link(r.in("loopback"), c.loopback);
  if (json.contains("network")) read_link(r.in("network"), c.network);
  if (json.contains("codecs")) read_codecs(r.in("codecs"), c.codecs);
  c.copy_beta = beta_at(r, "copy_gb_per_s", c.copy_beta);
  c.reduce_beta = beta_at(r, "reduce_gb_per_s", c.reduce_beta);
  const double far = c.far;
  c.far = r.number("far", {1, 100}, &far);
  TERN_TRY(wrong);
  return c;
}

std::string to_json(const Calibration& c) {
  const Json json = {{"shared_memory", json_of(c.shared_memory)},
                     {"loopback", json_of(c.loopback)},
                     {"network", json_of(c.network)},
                     {"copy_gb_per_s", 1 / (c.copy_beta * kGiga)},
                     {"reduce_gb_per_s", 1 / (c.reduce_beta * kGiga)},
                     {"far", c.far},
                     {"codecs", json_of(c.codecs)}};
  return json.dump(1) + "\n";
}

Result<Calibration> calibration_of(const Config& config) {
  if (config.calibration.empty()) return built_in_calibration();
  TERN_ASSIGN(const std::string text, read_text_file(config.calibration));
  return parse_calibration(text, config.calibration);
}

}  // namespace tern
