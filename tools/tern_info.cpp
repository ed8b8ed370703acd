#include "tools/tern_info.h"

#include "kernels/targets.h"
#include "runtime/base/dtype.h"
#include "runtime/codec/codec.h"
#include "runtime/plan/registry.h"
#include "runtime/transport/transport.h"
#include "tools/text_table.h"

namespace tern::tools {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

void add_section(Report& report, std::string_view title, const Rows& rows) {
  report.text += fmt::format("{}{}\n", report.text.empty() ? "" : "\n", title);
  report.text += text_table(rows);
}

void add_build(Report& report) {
  std::string targets;
  for (const std::string_view target : simd_targets())
    targets += fmt::format("{}{}", targets.empty() ? "" : ", ", target);
  const Rows facts = {{"version", TERN_VERSION},        {"compiler", TERN_COMPILER},
                      {"build type", TERN_BUILD_TYPE},  {"instruction sets", targets},
                      {"UCX", TERN_UCX_VERSION},        {"Open MPI", TERN_MPI_VERSION},
                      {"Highway", TERN_HIGHWAY_VERSION}};
  Rows rows = {{"Build", ""}};
  for (const auto& fact : facts) {
    const std::string value = fact[1].empty() ? "not built in" : fact[1];
    report.data["build"][fact[0]] = value;
    rows.push_back({fmt::format("  {}", fact[0]), value});
  }
  report.text += text_table(rows);
}

void add_settings(Report& report, const Config& config) {
  Rows rows = {{"  name", "value", "from", "allowed", "meaning"}};
  report.data["settings"] = Json::array();
  for (const Setting& s : kSettings) {
    const bool from_environment = environment(s.variable).has_value();
    const std::string value = s.text_in(config);
    report.data["settings"].push_back({{"name", s.variable},
                                       {"value", value},
                                       {"from", from_environment ? "environment" : "default"},
                                       {"default", s.initial},
                                       {"allowed", s.allowed},
                                       {"meaning", s.doc}});
    rows.push_back({fmt::format("  {}", s.variable), value.empty() ? "\"\"" : value,
                    from_environment ? "environment" : "default", std::string(s.allowed),
                    std::string(s.doc)});
  }
  add_section(report, "Settings", rows);
}

void add_algorithms(Report& report) {
  // A world in which every algorithm has all its collectives.
  constexpr int kSomeRanks = 8;
  constexpr std::array<int, kSomeRanks> kSomeHosts = {0, 0, 0, 0, 1, 1, 1, 1};
  Rows rows = {{"  name", "codecs", "collectives", "what it is"}};
  report.data["algorithms"] = Json::array();
  for (const Algorithm& a : algorithms()) {
    Json collectives = Json::array();
    std::string text;
    for (int c = 0; c < kNumCollectives; ++c) {
      const auto collective = static_cast<Collective>(c);
      if (!a.supports({.collective = collective, .n_ranks = kSomeRanks, .node_of = kSomeHosts})) continue;
      collectives.push_back(name(collective));
      text += fmt::format("{}{}", text.empty() ? "" : " ", name(collective));
    }
    report.data["algorithms"].push_back({{"name", a.name},
                                         {"can_encode", a.can_encode()},
                                         {"collectives", collectives},
                                         {"summary", a.summary}});
    rows.push_back(
        {fmt::format("  {}", a.name), a.can_encode() ? "yes" : "no", text, std::string(a.summary)});
  }
  add_section(report, "Algorithms", rows);
}

std::string options_text(const CodecInfo& codec) {
  std::string text;
  for (const CodecOption& option : codec.options) {
    text += fmt::format("{}{}=", text.empty() ? "" : " ", option.name);
    for (size_t i = 0; i < option.allowed.size(); ++i)
      text += fmt::format("{}{}", i == 0 ? "" : "|", value_text(option, i));
  }
  return text;
}

void add_codecs(Report& report) {
  constexpr std::array<std::string_view, 3> kResidual = {"none", "optional", "mandatory"};
  Rows rows = {{"  name", "bits/element", "block", "residual", "options"}};
  report.data["codecs"] = Json::array();
  for (const CodecInfo& codec : codecs()) {
    const CodecSpec spec = {.id = codec.id};
    const std::string_view residual = kResidual[static_cast<size_t>(codec.residual)];
    const double bits = codec.bits_per_element(spec, sizeof(float));
    report.data["codecs"].push_back({{"name", codec.name},
                                     {"bits_per_element", bits},
                                     {"block", codec.block},
                                     {"residual", residual},
                                     {"options", options_text(codec)}});
    rows.push_back({fmt::format("  {}", codec.name), fmt::format("{:.3f}", bits),
                    fmt::format("{}", codec.block), std::string(residual), options_text(codec)});
  }
  add_section(report, "Codecs", rows);
}

void add_transports(Report& report, const World& world) {
  Rows rows = {{"  name", "usable here", "what it is"}};
  report.data["transports"] = Json::array();
  for (const TransportInfo& t : transports()) {
    std::string why_not;
    const bool usable = !t.domain(world, &why_not).empty();
    report.data["transports"].push_back(
        {{"name", t.name}, {"usable", usable}, {"why_not", why_not}, {"summary", t.summary}});
    rows.push_back({fmt::format("  {}", t.name), usable ? "yes" : fmt::format("no: {}", why_not),
                    std::string(t.summary)});
  }
  add_section(report, "Transports", rows);
}

}  // namespace

Report info_report(const World& world) {
  Report report;
  add_build(report);
  add_settings(report, world.config);
  add_algorithms(report);
  add_codecs(report);
  add_transports(report, world);
  return report;
}

}  // namespace tern::tools
