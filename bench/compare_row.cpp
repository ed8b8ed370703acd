#include "bench/compare_row.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/base/size.h"

namespace tern::bench {
namespace {

using Json = nlohmann::ordered_json;

std::string memory_name(bool shared) {
  return shared ? "tern::allocate" : "plain";
}

std::string cell_text(const CompareCell& cell) {
  if (!cell.offered) return fmt::format("  {:>11} {:>5}", "-", "");
  return fmt::format("  {:>11.2f} {:>4.0f}%", cell.median() * 1e6, cell.spread_percent());
}

Json cell_json(const CompareCell& cell) {
  if (!cell.offered) return {{"name", cell.name}, {"us", nullptr}};
  std::vector<double> us = cell.seconds;
  for (double& t : us) t *= 1e6;
  return {{"name", cell.name},
          {"us", cell.median() * 1e6},
          {"spread_pct", cell.spread_percent()},
          {"repetitions_us", us},
          {"wrong", cell.n_wrong}};
}

}  // namespace

double CompareCell::median() const {
  if (seconds.empty()) return 0;
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double CompareCell::spread_percent() const {
  if (seconds.empty() || median() <= 0) return 0;
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  return 100 * (*most - *least) / median();
}

const CompareCell* CompareRow::best_peer() const {
  const CompareCell* best = nullptr;
  for (const CompareCell& peer : peers) {
    if (peer.offered && (best == nullptr || peer.median() < best->median())) best = &peer;
  }
  return best;
}

double CompareRow::ratio() const {
  const CompareCell* best = best_peer();
  return best == nullptr || tern.median() <= 0 ? 0 : best->median() / tern.median();
}

size_t CompareRow::n_wrong() const {
  size_t n = tern.n_wrong;
  for (const CompareCell& peer : peers) n += peer.n_wrong;
  return n;
}

std::string compare_head(const CompareSetting& setting, const std::vector<std::string>& peers) {
  std::string text =
      fmt::format("# {}\n# {} cores; us per call, median of {} interleaved repetitions and their spread\n",
                  setting.command, setting.n_cores, setting.repetitions);
  text += fmt::format("# {}\n", fmt::join(setting.versions, "; "));
  text += fmt::format(
      "# ratio = best peer's time / Tern's: above 1, Tern is faster\n{:<14}  {:>8}  {:>5}  {:<14}",
      "collective", "size", "ranks", "memory");
  text += fmt::format("  {:>11} {:>5}", "tern_us", "+-");
  for (const std::string& peer : peers) text += fmt::format("  {:>11} {:>5}", peer + "_us", "+-");
  return text + fmt::format("  {:>7}  {:<8}  {:>6}\n", "ratio", "best", "#wrong");
}

std::string compare_line(const CompareRow& row) {
  std::string text = fmt::format("{:<14}  {:>8}  {:>5}  {:<14}", name(row.exercise), format_size(row.n_bytes),
                                 row.n_ranks, memory_name(row.shared));
  text += cell_text(row.tern);
  for (const CompareCell& peer : row.peers) text += cell_text(peer);
  const CompareCell* best = row.best_peer();
  return text + fmt::format("  {:>7.2f}  {:<8}  {:>6}\n", row.ratio(), best == nullptr ? "-" : best->name,
                            row.n_wrong());
}

std::string compare_json(const CompareSetting& setting, const std::vector<CompareRow>& rows) {
  Json j = {{"command", setting.command},
            {"cores", setting.n_cores},
            {"repetitions", setting.repetitions},
            {"versions", setting.versions},
            {"rows", Json::array()}};
  for (const CompareRow& row : rows) {
    Json peers = Json::array();
    for (const CompareCell& peer : row.peers) peers.push_back(cell_json(peer));
    const CompareCell* best = row.best_peer();
    j["rows"].push_back({{"collective", name(row.exercise)},
                         {"size", row.n_bytes},
                         {"ranks", row.n_ranks},
                         {"memory", memory_name(row.shared)},
                         {"tern_us", row.tern.median() * 1e6},
                         {"tern", cell_json(row.tern)},
                         {"peers", peers},
                         {"best_peer", best == nullptr ? Json() : Json(best->name)},
                         {"ratio", row.ratio()},
                         {"wrong", row.n_wrong()}});
  }
  return j.dump(1);
}

}  // namespace tern::bench
