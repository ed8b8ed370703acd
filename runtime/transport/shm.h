// Transport between processes of one host: messages from tern::allocate memory are read in place by the peer.
#pragma once

#include "runtime/transport/transport.h"

namespace tern {

/// Equal on ranks of one host (World::host_id) and one process namespace (peers are found by process id).
std::string shm_domain(const World& world, std::string* why_not);

/// See TransportInfo::connect. Errors, equal on all members: kUnsupported (a member cannot map another's
/// memory: which, and why), kTimeout, kPeerLost.
Result<std::unique_ptr<Transport>> connect_shm(const World& world, std::span<const int> members,
                                               std::string_view key);

}  // namespace tern
