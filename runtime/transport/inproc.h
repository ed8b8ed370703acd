// Transport between ranks that are threads of one process: every message above 4 KiB is a view of the
// sender's memory.
#pragma once

#include "runtime/transport/transport.h"

namespace tern {

/// Equal on the ranks of one in-process world.
std::string inproc_domain(const World& world, std::string* why_not);

/// See TransportInfo::connect. Errors: kUnsupported (the ranks are processes), kOutOfMemory, kTimeout,
/// kPeerLost.
Result<std::unique_ptr<Transport>> connect_inproc(const World& world, std::span<const int> members,
                                                  std::string_view key);

}  // namespace tern
