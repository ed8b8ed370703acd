// The registry of transports, and which of them joins which ranks.
//
// Every rank tells all others the domain it has with each row (or why it has none). From then on the choice
// is a function of what all of them know (routes.h), so that all ranks choose alike and err alike.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/bootstrap/fields.h"
#include "runtime/transport/faulty.h"
#include "runtime/transport/inproc.h"
#include "runtime/transport/mux.h"
#include "runtime/transport/routes.h"
#include "runtime/transport/shm.h"
#include "runtime/transport/tcp.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/ucx.h"

namespace tern {
namespace {

std::string faulty_domain(const World& /*world*/, std::string* /*why_not*/) {
  return "faulty";
}
Result<std::unique_ptr<Transport>> connect_faulty(const World& world, std::span<const int> members,
                                                  std::string_view key);

constexpr std::array<TransportInfo, 5> kTransports = {{
    {"inproc", "ranks as threads of one process; every payload is read in place", inproc_domain,
     connect_inproc},
    {"shm",
     "processes of one machine; memory from tern::allocate is read in place, other memory through slots",
     shm_domain, connect_shm},
    {"ucx", "between machines: UCX over RDMA where there is such a network, else TCP", ucx_domain,
     connect_ucx, true, ucx_drawback},
    {"tcp", "between machines: TCP sockets, from memory to memory without a copy of Tern's", tcp_domain,
     connect_tcp, true},
    {"faulty", "the others, with the faults of TERN_FAULTS (without it: delays and stalls); for tests",
     faulty_domain, connect_faulty},
}};
/// The rows that carry bytes themselves, in order of preference.
constexpr std::span<const TransportInfo> kCarriers = std::span(kTransports).first<4>();
constexpr std::string_view kMischief = "seed=1,delay=0.2:20,stall=0.01:50";

/// A communicator that is being connected.
struct Group {
  const World& world;
  std::span<const int> members;
  std::string_view key;
};

std::string pack_domains(const World& world) {
  std::string bytes;
  for (const TransportInfo& row : kCarriers) {
    std::string why_not;
    std::string domain = row.domain(world, &why_not);
    if (world.config.transport == "auto" && !domain.empty() && row.drawback != nullptr) {
      why_not = row.drawback();
      if (!why_not.empty()) domain.clear();
    }
    append_text(bytes, domain);
    append_text(bytes, why_not);
  }
  return bytes;
}

Result<Domains> unpack_domains(std::string_view bytes, int rank) {
  Domains domains{rank, {}};
  FieldReader reader(bytes);
  for (size_t row = 0; row < kCarriers.size(); ++row) {
    const auto name = reader.text();
    const auto why_not = reader.text();
    if (!why_not) {
      return error_at(rank, Code::kMismatch,
                      "rank {} does not know the transports that this rank knows: it runs another build",
                      rank);
    }
    domains.rows.push_back({std::string(*name), std::string(*why_not)});
  }
  return domains;
}

Result<std::vector<Domains>> domains_of_all(const Group& group) {
  const World& world = group.world;
  TERN_ASSIGN(const auto packed, exchange_among(*world.store, world.rank, group.members,
                                                {fmt::format("{}/domains", group.key), pack_domains(world),
                                                 Deadline::after(world.config.bootstrap_timeout)}));
  std::vector<Domains> all;
  for (size_t i = 0; i < packed.size(); ++i) {
    TERN_ASSIGN(Domains domains, unpack_domains(packed[i], group.members[i]));
    all.push_back(std::move(domains));
  }
  return all;
}

Result<std::unique_ptr<Transport>> connect_by(const TransportInfo& row, const Group& group,
                                              std::span<const int> members) {
  return row.connect(group.world, members, fmt::format("{}/{}", group.key, row.name));
}

// Several transports, each to the members that it reaches best.
Result<std::unique_ptr<Transport>> connect_routes(const Routes& routes, const Group& group) {
  std::vector<std::unique_ptr<Transport>> parts;
  for (const Routes::Join& join : routes.joins) {
    std::vector<int> ranks;
    for (const int member : join.members) ranks.push_back(group.members[static_cast<size_t>(member)]);
    TERN_ASSIGN(auto part, connect_by(kCarriers[join.row], group, ranks));
    parts.push_back(std::move(part));
  }
  if (parts.size() == 1) return std::move(parts.front());
  std::vector<size_t> part_of_rank(static_cast<size_t>(group.members.back()) + 1);
  for (size_t i = 0; i < group.members.size(); ++i) {
    part_of_rank[static_cast<size_t>(group.members[i])] = routes.join_of[i];
  }
  return std::unique_ptr<Transport>(std::make_unique<Mux>(std::move(parts), std::move(part_of_rank)));
}

Result<std::unique_ptr<Transport>> connect_carriers(const Group& group) {
  TERN_ASSIGN(const auto domains, domains_of_all(group));
  const std::string& wanted = group.world.config.transport;
  // A single rank has no pair that asks for a row.
  const bool takes_any = wanted == "auto" && group.members.size() == 1;
  for (size_t row = 0; row < kCarriers.size(); ++row) {
    const Status joined = joins_all(domains, row, kCarriers[row].name);
    if (!joined.ok() && wanted == kCarriers[row].name) return joined.error();
    if (joined.ok() && (takes_any || wanted == kCarriers[row].name)) {
      return connect_by(kCarriers[row], group, group.members);
    }
  }
  if (wanted != "auto") TERN_TRY(find_transport(wanted));
  const auto self = std::find(group.members.begin(), group.members.end(), group.world.rank);
  TERN_ASSIGN(const Routes routes, choose_routes(domains, static_cast<size_t>(self - group.members.begin())));
  return connect_routes(routes, group);
}

Result<std::unique_ptr<Transport>> connect_faulty(const World& world, std::span<const int> members,
                                                  std::string_view key) {
  const std::string& faults = world.config.faults;
  TERN_ASSIGN(const FaultSpec spec, parse_faults(faults.empty() ? kMischief : faults));
  TERN_ASSIGN(auto inner, connect_carriers({world, members, key}));
  return with_faults(std::move(inner), spec, world.rank);
}

}  // namespace

std::span<const TransportInfo> transports() {
  return kTransports;
}

Result<const TransportInfo*> find_transport(std::string_view name) {
  std::vector<std::string_view> names;
  for (const TransportInfo& row : kTransports) {
    if (row.name == name) return &row;
    names.push_back(row.name);
  }
  return error(Code::kNotFound, "there is no transport \"{}\"; there are: {}", name, fmt::join(names, ", "));
}

bool is_network(std::string_view name) {
  return std::any_of(kTransports.begin(), kTransports.end(),
                     [name](const TransportInfo& row) { return row.name == name && row.is_network; });
}

Result<std::unique_ptr<Transport>> connect(const World& world, std::span<const int> members,
                                           std::string_view key) {
  if (!world.config.faults.empty()) return connect_faulty(world, members, key);
  return connect_carriers({world, members, key});
}

}  // namespace tern
