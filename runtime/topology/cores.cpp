#include "runtime/topology/cores.h"

#include <fmt/ranges.h>
#include <hwloc.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "runtime/base/handle.h"

namespace tern {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

struct TopologyTraits {
  using type = hwloc_topology_t;
  static constexpr type null() { return nullptr; }
  static void close(type topology) noexcept { hwloc_topology_destroy(topology); }
};
struct BitmapTraits {
  using type = hwloc_bitmap_t;
  static constexpr type null() { return nullptr; }
  static void close(type bitmap) noexcept { hwloc_bitmap_free(bitmap); }
};

// quota and period in microseconds; "max" or -1 is no limit.
double ratio(const std::string& quota, const std::string& period) {
  const double granted = std::strtod(quota.c_str(), nullptr);
  const double per = std::strtod(period.c_str(), nullptr);
  return granted > 0 && per > 0 ? granted / per : kUnlimited;
}

std::string first_word(const std::filesystem::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

double quota_v2(const std::filesystem::path& group) {
  std::ifstream file(group / "cpu.max");
  std::string quota;
  std::string period;
  file >> quota >> period;
  return ratio(quota, period);
}

double quota_v1(const std::filesystem::path& group) {
  return ratio(first_word(group / "cpu.cfs_quota_us"), first_word(group / "cpu.cfs_period_us"));
}

/// A group and those around it. Inside a container the path may be the host's, of which only the root is
/// mounted: groups that are not there limit nothing.
template <class Quota>
double least_up_to(const std::filesystem::path& root, std::string_view group, Quota quota) {
  double least = quota(root);
  std::filesystem::path at = root;
  for (const auto& part : std::filesystem::path(group).relative_path()) {
    at /= part;
    least = std::min(least, quota(at));
  }
  return least;
}

bool has_cpu_controller(std::string_view controllers) {
  std::istringstream words{std::string(controllers)};
  for (std::string word; std::getline(words, word, ',');) {
    if (word == "cpu") return true;
  }
  return false;
}

}  // namespace

double cgroup_quota(std::string_view membership, std::string_view mount) {
  double least = kUnlimited;
  std::istringstream lines{std::string(membership)};
  const std::filesystem::path root(mount);
  // A line is id:controllers:path; version 2 has id 0 and names no controllers.
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(
          {least, least_up_to(root, group, quota_v2), least_up_to(root / "unified", group, quota_v2)});
    } else if (has_cpu_controller(controllers)) {
      least = std::min({least, least_up_to(root / controllers, group, quota_v1),
                        least_up_to(root / "cpu", group, quota_v1)});
    }
  }
  return least;
}

int Cores::usable() const {
  const double limit = std::min(static_cast<double>(physical.size()), std::floor(quota));
  return std::max(1, static_cast<int>(limit));
}

Cores find_cores() {
  Cores cores;
  std::ifstream file("/proc/self/cgroup");
  const std::string membership{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  cores.quota = cgroup_quota(membership, "/sys/fs/cgroup");

  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return cores;
  const Handle<TopologyTraits> topology(raw);
  const Handle<BitmapTraits> allowed(hwloc_bitmap_alloc());
  if (hwloc_topology_load(raw) != 0 || hwloc_get_cpubind(raw, allowed.get(), HWLOC_CPUBIND_PROCESS) != 0)
    return cores;
  const auto those = [&](hwloc_obj_type_t type) {
    std::vector<int> numbers;
    for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(raw, type, object)) != nullptr;) {
      if (hwloc_bitmap_intersects(object->cpuset, allowed.get()) != 0)
        numbers.push_back(static_cast<int>(object->logical_index));
    }
    return numbers;
  };
  const std::vector<int> threads = those(HWLOC_OBJ_PU);
  cores.n_threads = std::max(1, static_cast<int>(threads.size()));
  std::vector<int> physical = those(HWLOC_OBJ_CORE);
  if (physical.empty()) physical = threads;  // some virtual machines show no cores
  if (!physical.empty()) cores.physical = std::move(physical);
  return cores;
}

std::string to_text(const Cores& cores) {
  const std::string numbers = fmt::format("{}", fmt::join(cores.physical, ","));
  return std::isinf(cores.quota) ? numbers : fmt::format("{}/{}", numbers, cores.quota);
}

int usable_together(std::span<const std::string> texts) {
  Cores all{.physical = {}};
  for (const std::string& text : texts) {
    const size_t slash = text.find('/');
    if (slash != std::string::npos)
      all.quota = std::min(all.quota, std::strtod(text.c_str() + slash + 1, nullptr));
    std::istringstream numbers(text.substr(0, slash));
    for (std::string number; std::getline(numbers, number, ',');)
      all.physical.push_back(static_cast<int>(std::strtol(number.c_str(), nullptr, 10)));
  }
  std::sort(all.physical.begin(), all.physical.end());
  all.physical.erase(std::unique(all.physical.begin(), all.physical.end()), all.physical.end());
  return all.usable();
}

int usable_cores() {
  return find_cores().usable();
}

}  // namespace tern
