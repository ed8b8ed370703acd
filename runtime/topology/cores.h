// How many cores this process may use: what the machine has, less what affinity and control groups forbid.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tern {

struct Cores {
  /// Those with at least one hardware thread that the affinity mask allows, as the machine numbers them.
  std::vector<int> physical = {0};
  int n_threads = 1;  ///< hardware threads that the affinity mask allows
  /// CPU seconds per second that the control groups grant; infinite without a limit.
  double quota = std::numeric_limits<double>::infinity();

  /// At least 1: physical cores, or fewer under a quota. Two hardware threads of a core share its
  /// floating-point units, so the second adds nothing to dense arithmetic.
  int usable() const;
};

/// Asks hwloc, sched_getaffinity and the control groups (v1 and v2). Takes milliseconds: ask once.
Cores find_cores();
/// find_cores().usable()
int usable_cores();

/// For other processes of the machine: "0,1,7/1.5" (no "/" without a quota).
std::string to_text(const Cores& cores);
/// What processes may use together: launchers bind each to cores of its own, so that none sees all. Texts
/// that are not to_text()'s count as one core. At least 1.
int usable_together(std::span<const std::string> texts);

/// The quota granted to a process whose /proc/<pid>/cgroup reads `membership`, with the control groups
/// mounted at `mount` ("/sys/fs/cgroup"): the least of its group and the groups around it.
double cgroup_quota(std::string_view membership, std::string_view mount);

}  // namespace tern
