#include "runtime/topology/hosts.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace tern {

bool HostPartition::is_uniform() const {
  return std::all_of(hosts.begin(), hosts.end(),
                     [&](const auto& ranks) { return ranks.size() == hosts.front().size(); });
}

HostPartition partition_by_host(std::span<const std::string> host_ids) {
  HostPartition partition;
  std::map<std::string_view, int> index_of;
  for (size_t rank = 0; rank < host_ids.size(); ++rank) {
    const auto [at, is_new] = index_of.emplace(host_ids[rank], partition.n_hosts());
    if (is_new) partition.hosts.emplace_back();
    partition.hosts[static_cast<size_t>(at->second)].push_back(static_cast<int>(rank));
    partition.host_of.push_back(at->second);
  }
  return partition;
}

}  // namespace tern
