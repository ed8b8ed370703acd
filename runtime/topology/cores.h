// How many cores this process may use: what the machine has, less what affinity and control groups forbid.
#pragma once

#include <limits>
#include <string_view>

namespace tern {

struct Cores {
  int n_physical = 1;  ///< with at least one hardware thread that the affinity mask allows
  int n_threads = 1;   ///< hardware threads that the affinity mask allows
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

/// The quota granted to a process whose /proc/<pid>/cgroup reads `membership`, with the control groups
/// mounted at `mount` ("/sys/fs/cgroup"): the least of its group and the groups around it.
double cgroup_quota(std::string_view membership, std::string_view mount);

}  // namespace tern
