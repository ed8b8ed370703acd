// Transport between machines: UCX over whatever network there is (verbs, RoCE, TCP).
#pragma once

#include "runtime/transport/transport.h"

namespace tern {

/// Equal on all ranks: any two addresses may reach each other, which only a connection shows. "" when built
/// without UCX.
std::string ucx_domain(const World& world, std::string* why_not);

/// Without an RDMA device UCX goes over TCP, where it copies more than the transport tcp.
std::string ucx_drawback();

/// See TransportInfo::connect. Ranks listen at World::address and exchange addresses and a session key
/// through the store; end points are made when the first message is sent, so that p ranks on a ring open p
/// connections, not p * p. Errors: kUnsupported (built without UCX), kIo (UCX refuses; its words), kTimeout,
/// kPeerLost.
Result<std::unique_ptr<Transport>> connect_ucx(const World& world, std::span<const int> members,
                                               std::string_view key);

}  // namespace tern
