// The registry of transports, and which of them joins which ranks.
//
// Every rank tells all others the domain it has with each row (or why it has none). From then on the choice
// is a function of what all of them know, so that all ranks choose alike and err alike.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "runtime/bootstrap/fields.h"
#include "runtime/transport/inproc.h"
#include "runtime/transport/shm.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/ucx.h"

namespace tern {
namespace {

// In order of preference: auto takes the first row whose domain two ranks share.
constexpr std::array<TransportInfo, 3> kTransports = {{
    {"inproc", "ranks as threads of one process; every payload is read in place", inproc_domain,
     connect_inproc},
    {"shm",
     "processes of one machine; memory from tern::allocate is read in place, other memory through slots",
     shm_domain, connect_shm},
    {"ucx", "between machines: UCX over RDMA where there is such a network, else TCP", ucx_domain,
     connect_ucx},
}};

struct Domain {
  std::string name;  ///< "" when the rank cannot use the row
  std::string why_not;
};
using Domains = std::vector<Domain>;  // by row

Domains domains_of(const World& world) {
  Domains domains;
  for (const TransportInfo& row : kTransports) {
    Domain domain;
    domain.name = row.domain(world, &domain.why_not);
    domains.push_back(std::move(domain));
  }
  return domains;
}

std::string pack(const Domains& domains) {
  std::string bytes;
  for (const Domain& domain : domains) {
    append_text(bytes, domain.name);
    append_text(bytes, domain.why_not);
  }
  return bytes;
}

Result<Domains> unpack(std::string_view bytes, int rank) {
  Domains domains;
  FieldReader reader(bytes);
  for (size_t row = 0; row < kTransports.size(); ++row) {
    const auto name = reader.text();
    const auto why_not = reader.text();
    if (!why_not) {
      return error_at(rank, Code::kMismatch,
                      "rank {} does not know the transports that this rank knows: another build", rank);
    }
    domains.push_back({std::string(*name), std::string(*why_not)});
  }
  return domains;
}

Result<std::vector<Domains>> domains_of_all(const World& world, std::string_view key) {
  TERN_ASSIGN(const auto packed,
              exchange(*world.store, fmt::format("{}/domains", key), world.rank, world.size,
                       pack(domains_of(world)), Deadline::after(world.config.bootstrap_timeout)));
  std::vector<Domains> all;
  for (size_t rank = 0; rank < packed.size(); ++rank) {
    TERN_ASSIGN(Domains domains, unpack(packed[rank], static_cast<int>(rank)));
    all.push_back(std::move(domains));
  }
  return all;
}

size_t index_of(const TransportInfo& row) {
  return static_cast<size_t>(&row - kTransports.data());
}

// Why `row` cannot join all ranks; nothing when it can.
Status joins_all(const std::vector<Domains>& domains, const TransportInfo& row) {
  const size_t at = index_of(row);
  const Domain& first = domains.front()[at];
  for (size_t rank = 0; rank < domains.size(); ++rank) {
    const Domain& domain = domains[rank][at];
    if (domain.name.empty()) {
      return error_at(static_cast<int>(rank), Code::kUnsupported, "rank {} cannot use the transport {}: {}",
                      rank, row.name, domain.why_not);
    }
    if (domain.name != first.name) {
      return error_at(static_cast<int>(rank), Code::kUnsupported,
                      "the transport {} does not join ranks 0 and {}: they are in \"{}\" and \"{}\"",
                      row.name, rank, first.name, domain.name);
    }
  }
  return {};
}

std::vector<int> all_ranks(int n) {
  std::vector<int> ranks(static_cast<size_t>(n));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Result<std::unique_ptr<Transport>> connect_by(const TransportInfo& row, const World& world,
                                              std::string_view key) {
  return row.connect(world, all_ranks(world.size), fmt::format("{}/{}", key, row.name));
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

Result<std::unique_ptr<Transport>> connect(const World& world, std::string_view key) {
  TERN_ASSIGN(const auto domains, domains_of_all(world, key));
  if (world.config.transport != "auto") {
    TERN_ASSIGN(const TransportInfo* row, find_transport(world.config.transport));
    TERN_TRY(joins_all(domains, *row));
    return connect_by(*row, world, key);
  }
  for (const TransportInfo& row : kTransports) {
    if (joins_all(domains, row).ok()) return connect_by(row, world, key);
  }
  return joins_all(domains, kTransports.back()).error();
}

}  // namespace tern
