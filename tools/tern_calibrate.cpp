#include "tools/tern_calibrate.h"

#include <thread>

#include "runtime/communicator/calibrate.h"
#include "tools/text_table.h"
#include "tools/write_file.h"

namespace tern::tools {
namespace {

/// Two ranks as threads: what one process can know of shared memory.
Result<Calibration> calibrate_alone(const Config& config) {
  TERN_ASSIGN(std::vector<World> worlds, World::in_process_world(2, config));
  Result<Calibration> other = built_in_calibration();
  std::thread thread([&] { other = calibrate(worlds[1]); });
  Result<Calibration> mine = calibrate(worlds[0]);
  thread.join();
  return mine.ok() && !other.ok() ? other : mine;
}

std::vector<std::string> row_of(const char* what, const Link& link) {
  return {what, fmt::format("{:.2f} us", link.alpha * 1e6), fmt::format("{:.2f} GB/s", 1e-9 / link.beta)};
}

}  // namespace

Result<Report> calibrate_report(const Config& config, const std::string& file) {
  TERN_ASSIGN(const World world, World::from_environment(config));
  TERN_ASSIGN(const Calibration c, world.size == 1 ? calibrate_alone(config) : calibrate(world));
  Report report;
  if (world.rank != 0) return report;
  report.data = nlohmann::ordered_json::parse(to_json(c));
  report.text = text_table({{"", "latency", "speed"},
                            row_of("shared memory", c.shared_memory),
                            row_of("UCX inside a host", c.loopback),
                            row_of("UCX between hosts", c.network),
                            {"copy", "", fmt::format("{:.2f} GB/s", 1e-9 / c.copy_beta)},
                            {"sum of two", "", fmt::format("{:.2f} GB/s", 1e-9 / c.reduce_beta)},
                            {"beyond the cache", "", fmt::format("{:.2f} times slower", c.far)}});
  report.text += "Links that these ranks do not have keep their built-in speeds.\n";
  if (file.empty()) return report;
  TERN_TRY(write_file(file, to_json(c)));
  report.text += fmt::format("TERN_CALIBRATION={} makes the planner use it, on all ranks.\n", file);
  return report;
}

}  // namespace tern::tools
