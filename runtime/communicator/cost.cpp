#include "runtime/communicator/cost.h"

#include <algorithm>
#include <map>
#include <memory>

#include "runtime/topology/cores.h"
#include "runtime/transport/transport.h"

namespace tern {

Result<std::vector<int>> cores_of_hosts(const World& world, std::span<const int> members,
                                        std::string_view key) {
  std::vector<int> ascending(members.begin(), members.end());
  std::sort(ascending.begin(), ascending.end());
  TERN_ASSIGN(const auto texts, exchange_among(*world.store, world.rank, ascending,
                                               {fmt::format("{}/cores", key), to_text(find_cores()),
                                                Deadline::after(world.config.bootstrap_timeout)}));
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

CostModel encoded_model(CostModel dense, const CodecSpec& codec, size_t elt, const CodecSpeeds& speeds) {
  constexpr double kBits = 8;
  const auto bytes = static_cast<double>(elt);
  const CodecSpeed& speed = speeds[static_cast<size_t>(codec.id)];
  dense.wire_ratio = info(codec.id).bits_per_element(codec, elt) / (kBits * bytes);
  // Codecs take their time per element, whatever its bytes.
  dense.encode_beta = speed.encode_beta * sizeof(float) / bytes;
  dense.decode_beta = speed.decode_beta * sizeof(float) / bytes;
  return dense;
}

CostModel cost_model(const World& world, std::span<const int> members, std::span<const int> cores,
                     const Calibration& speeds) {
  CostModel model;
  std::vector<std::string> host_of;
  for (const int rank : members) host_of.push_back(world.host_ids[static_cast<size_t>(rank)]);
  // Shared with the closures: a CostModel is copied freely and outlives the World it was made from.
  auto hosts = std::make_shared<const std::vector<std::string>>(std::move(host_of));
  const bool by_network = is_network(world.config.transport);
  const int local_size = world.local_size;
  const int size = world.size;
  model.link = [hosts, by_network, local_size, size, speeds](int from, int to) {
    const bool together = (*hosts)[static_cast<size_t>(from)] == (*hosts)[static_cast<size_t>(to)];
    if (together && !by_network) return speeds.shared_memory;
    return local_size == size ? speeds.loopback : speeds.network;
  };
  model.node_of = [hosts](int rank) {
    const auto first = std::find(hosts->begin(), hosts->end(), (*hosts)[static_cast<size_t>(rank)]);
    return static_cast<int>(first - hosts->begin());
  };
  // The same on all ranks, though hosts may differ: the host with the fewest is the one waited for.
  model.cores_per_node = *std::min_element(cores.begin(), cores.end());
  model.reduce_beta = speeds.reduce_beta;
  model.copy_beta = speeds.copy_beta;
  // A quarter of a 2 MiB second-level cache: the operands of a reduction share it.
  model.cache_bytes = 512 << 10;
  model.far = speeds.far;
  model.round_overhead = is_crowded(world, members, cores) ? 1.5e-6 : 0.3e-6;
  return model;
}

}  // namespace tern
