// Transport between machines: TCP sockets of our own, for machines without an RDMA network.
#pragma once

#include "runtime/transport/transport.h"

namespace tern {

/// Equal on all ranks: any two addresses may reach each other, which only a connection shows.
std::string tcp_domain(const World& world, std::string* why_not);

/// See TransportInfo::connect. Ranks listen at World::address and exchange addresses and a session key
/// through the store; a rank connects to another when it first sends to it, so that p ranks on a ring open p
/// connections, not p * p. Errors: kIo (cannot listen), kTimeout, kPeerLost.
Result<std::unique_ptr<Transport>> connect_tcp(const World& world, std::span<const int> members,
                                               std::string_view key);

}  // namespace tern
