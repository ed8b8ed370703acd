#include "runtime/communicator/cost.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string_view>

#include "runtime/topology/cores.h"

namespace tern {

namespace {

// What one message costs by the kind of link. Measured with bench/transport_perf on a 2-core Xeon (AVX-512);
// a start-up calibration replaces such numbers where they are off, since only their ratios decide.
struct LinkClass {
  std::string_view name;
  Link link;
};
constexpr std::array<LinkClass, 3> kLinks = {{
    {"shared memory", {.alpha = 0.15e-6, .beta = 1 / 14e9, .receiver_reads = true}},
    {"loopback", {.alpha = 12e-6, .beta = 1 / 2.5e9}},
    {"network", {.alpha = 25e-6, .beta = 1 / 1.2e9}},
}};
constexpr const Link& kSharedMemory = kLinks[0].link;
constexpr const Link& kLoopback = kLinks[1].link;
constexpr const Link& kNetwork = kLinks[2].link;

}  // namespace

Result<std::vector<int>> cores_of_hosts(const World& world, std::span<const int> members,
                                        std::string_view key) {
  std::vector<int> ascending(members.begin(), members.end());
  std::sort(ascending.begin(), ascending.end());
  TERN_ASSIGN(const auto texts,
              exchange_among(*world.store, fmt::format("{}/cores", key), world.rank, ascending,
                             to_text(find_cores()), Deadline::after(world.config.bootstrap_timeout)));
  std::map<std::string_view, std::vector<std::string>> of_host;
  for (size_t i = 0; i < ascending.size(); ++i)
    of_host[world.host_ids[static_cast<size_t>(ascending[i])]].push_back(texts[i]);
  std::vector<int> cores;
  for (const int rank : members)
    cores.push_back(usable_together(of_host[world.host_ids[static_cast<size_t>(rank)]]));
  return cores;
}

bool is_crowded(const World& world, std::span<const int> members, std::span<const int> cores) {
  std::map<std::string_view, int> n_ranks;
  for (const int rank : members) ++n_ranks[world.host_ids[static_cast<size_t>(rank)]];
  for (size_t i = 0; i < members.size(); ++i)
    if (n_ranks[world.host_ids[static_cast<size_t>(members[i])]] > cores[i]) return true;
  return false;
}

CostModel cost_model(const World& world, std::span<const int> members, std::span<const int> cores) {
  CostModel model;
  std::vector<std::string> host_of;
  for (const int rank : members) host_of.push_back(world.host_ids[static_cast<size_t>(rank)]);
  // Shared with the closures: a CostModel is copied freely and outlives the World it was made from.
  auto hosts = std::make_shared<const std::vector<std::string>>(std::move(host_of));
  const bool by_ucx = world.config.transport == "ucx";
  const int local_size = world.local_size;
  const int size = world.size;
  model.link = [hosts, by_ucx, local_size, size](int from, int to) {
    const bool together = (*hosts)[static_cast<size_t>(from)] == (*hosts)[static_cast<size_t>(to)];
    if (together && !by_ucx) return kSharedMemory;
    return local_size == size ? kLoopback : kNetwork;
  };
  model.node_of = [hosts](int rank) {
    const auto first = std::find(hosts->begin(), hosts->end(), (*hosts)[static_cast<size_t>(rank)]);
    return static_cast<int>(first - hosts->begin());
  };
  // The same on all ranks, though hosts may differ: the host with the fewest is the one waited for.
  model.cores_per_node = *std::min_element(cores.begin(), cores.end());
  model.reduce_beta = 1 / 12e9;
  model.copy_beta = 1 / 14e9;
  // A quarter of a 2 MiB second-level cache: the operands of a reduction share it.
  model.cache_bytes = 512 << 10;
  model.far = 2.2;
  model.encode_beta = 1 / 15e9;
  model.decode_beta = 1 / 18e9;
  model.round_overhead = is_crowded(world, members, cores) ? 1.5e-6 : 0.3e-6;
  return model;
}

}  // namespace tern
