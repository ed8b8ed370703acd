#include "tools/tern_sim.h"

#include "tools/built_in_clusters.h"
#include "tools/call_text.h"
#include "tools/text_table.h"

namespace tern::tools {
namespace {

using Json = nlohmann::ordered_json;

/// Bus bandwidth over algorithm bandwidth, as nccl-tests defines it (doc/PERFORMANCE.md there).
double bus_factor(Collective collective, int n_ranks) {
  const double p = n_ranks;
  if (collective == Collective::kAllReduce) return 2 * (p - 1) / p;
  return owners_fixed(collective) ? (p - 1) / p : 1;
}

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.3f} ms", seconds * 1e3) : fmt::format("{:.3f} s", seconds);
}

void add_links(Report& report, const SimQuestion& q, const ClusterPrediction& p) {
  const Cluster& cluster = q.cluster;
  std::vector<std::vector<std::string>> rows = {{"link", "links", "bytes", "busiest", "its bytes", "busy"}};
  report.data["links"] = Json::array();
  for (const LinkUse& use : p.links) {
    const ClusterLevel& level = cluster.levels[static_cast<size_t>(use.level)];
    const double busy = p.call.seconds > 0 ? use.busiest_seconds / p.call.seconds : 0;
    report.data["links"].push_back({{"link", level.link.name},
                                    {"group", level.name},
                                    {"links", use.n_links},
                                    {"bytes", use.bytes},
                                    {"busiest", cluster.link_name(use.busiest)},
                                    {"busiest_bytes", use.busiest_bytes},
                                    {"busy_share", busy},
                                    {"limiting", use.level == p.limiting_level}});
    rows.push_back({fmt::format("{} {}", level.name, level.link.name), fmt::format("{}", use.n_links),
                    amount_text(use.bytes), cluster.link_name(use.busiest), amount_text(use.busiest_bytes),
                    fmt::format("{:.1f} %", 100 * busy)});
  }
  report.text += "\n" + text_table(rows);
}

std::string limit_text(const SimQuestion& q, const ClusterPrediction& p) {
  const double seconds = p.call.seconds;
  if (p.limiting_level < 0 || seconds <= 0) return "latency: no bytes moved";
  const LinkUse& use = p.links[static_cast<size_t>(p.limiting_level)];
  const double work = p.busiest_work_seconds / seconds;
  const double link = use.busiest_seconds / seconds;
  const std::string name =
      fmt::format("{} (busy {:.0f} % of the time)", q.cluster.link_name(use.busiest), 100 * link);
  if (work > link)
    return fmt::format("the device's work ({:.0f} % of the time); of links {}", 100 * work, name);
  return link < 0.5 ? fmt::format("latency and waiting; of links {}", name) : name;
}

}  // namespace

Result<Report> sim_report(const SimQuestion& q) {
  TERN_ASSIGN(const SimChoice choice, fastest_on(q));
  const ClusterPrediction& p = choice.prediction;
  const Cluster& cluster = q.cluster;
  const int n_ranks = q.groups.size > 0 ? q.groups.size : cluster.n_ranks;
  const double seconds = p.call.seconds;
  const double algbw = seconds > 0 ? static_cast<double>(q.n_bytes) / seconds * 1e-9 : 0;
  const double busbw = algbw * bus_factor(q.collective, n_ranks);
  Report report;
  report.data = {{"cluster", cluster.name},
                 {"source", cluster.source},
                 {"collective", name(q.collective)},
                 {"ranks", cluster.n_ranks},
                 {"bytes", q.n_bytes},
                 {"algorithm", choice.algorithm},
                 {"segment_bytes", choice.segment_bytes},
                 {"codec", to_string(choice.codec)},
                 {"seconds", seconds},
                 {"algbw_gb_per_s", algbw},
                 {"busbw_gb_per_s", busbw},
                 {"bytes_on_wire_per_rank", p.call.bytes_on_wire_per_rank},
                 {"messages_per_rank", p.call.n_messages},
                 {"work_seconds", p.busiest_work_seconds},
                 {"limit", limit_text(q, p)},
                 {"rank_classes", p.n_classes},
                 {"candidates", choice.n_candidates},
                 {"simulated", choice.n_simulated}};
  report.text = fmt::format("{} over {} ranks on {}\n\n", call_text(q.collective, q.n_bytes), cluster.n_ranks,
                            cluster.name);
  report.text += text_table(
      {{"algorithm", choice.algorithm},
       {"segments", segment_text(choice.segment_bytes)},
       {"codec", to_string(choice.codec)},
       {"time", time_text(seconds)},
       {"algbw", fmt::format("{:.3f} GB/s", algbw)},
       {"busbw", fmt::format("{:.3f} GB/s", busbw)},
       {"sent per rank",
        fmt::format("{} in {} messages", amount_text(static_cast<double>(p.call.bytes_on_wire_per_rank)),
                    p.call.n_messages)},
       {"device's work", time_text(p.busiest_work_seconds)},
       {"limited by", limit_text(q, p)},
       {"simulated", fmt::format("{} of {} candidates; {} kinds of rank in the fastest", choice.n_simulated,
                                 choice.n_candidates, p.n_classes)}});
  add_links(report, q, p);
  report.text += fmt::format("\nFigures: {}\n", cluster.source);
  return report;
}

Report clusters_report() {
  Report report;
  report.data = Json::array();
  std::vector<std::vector<std::string>> rows = {{"cluster", "ranks", "device", "links"}};
  for (const BuiltInCluster& built_in : built_in_clusters()) {
    const auto cluster = load_cluster(std::string(built_in.name), 0);
    TERN_CHECK(cluster.ok());
    std::string links;
    for (const ClusterLevel& level : cluster->levels)
      links += fmt::format("{}{}{} of {:.4g} GB/s per {}", links.empty() ? "" : ", ",
                           level.link.count > 1 ? fmt::format("{} ", level.link.count) : "", level.link.name,
                           level.link.bytes_per_s * 1e-9, level.name);
    report.data.push_back({{"name", cluster->name},
                           {"ranks", cluster->n_ranks},
                           {"device", cluster->device.name},
                           {"links", links},
                           {"source", cluster->source}});
    rows.push_back({cluster->name, fmt::format("{}", cluster->n_ranks), cluster->device.name, links});
  }
  report.text = text_table(rows);
  return report;
}

}  // namespace tern::tools
