// Which ranks share a machine.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace tern {

/// The ranks of a world, parted by machine. Value type.
struct HostPartition {
  std::vector<std::vector<int>> hosts;  ///< ranks of each machine, ascending; machines by their lowest rank
  std::vector<int> host_of;             ///< machine of each rank, an index into `hosts`

  int n_hosts() const { return static_cast<int>(hosts.size()); }
  /// Every machine has equally many ranks, as hierarchical algorithms want it.
  bool is_uniform() const;
  bool operator==(const HostPartition&) const = default;
};

/// host_ids: World::host_ids, one per rank; equal on ranks of one machine. Cost: O(p log p).
HostPartition partition_by_host(std::span<const std::string> host_ids);

}  // namespace tern
