// A transport that misbehaves, for tests of everything above it. Decorates any other.
//
// TERN_FAULTS is a comma-separated list. The same list gives the same faults at the same messages, and
// nothing looks at the clock: time is counted in polls.
//   seed=N       of the random choices; each rank has its own stream (default 1)
//   rank=R       only this rank misbehaves (default: all)
//   delay=P[:N]  with probability P, a send starts, or a receive is told done, up to N polls late (default
//   64). Sends to
//                one peer keep their order
//   stall=P[:N]  with probability P per poll, nothing moves for N polls (default 256)
//   drop=P       with probability P per send, the connection to the peer breaks: kPeerLost naming it
//   cut=N        the connection breaks at this rank's Nth send
//   hole=N       from the Nth send on, messages to that send's peer vanish, though they seem sent (a
//   half-open
//                connection): only a deadline can end the peer's wait
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/transport/transport.h"

namespace tern {

struct FaultSpec {
  uint64_t seed = 1;
  int rank = -1;  ///< -1: all
  double delay = 0;
  int delay_polls = 64;
  double stall = 0;
  int stall_polls = 256;
  double drop = 0;
  int cut = 0;   ///< 0: never
  int hole = 0;  ///< 0: never
  bool operator==(const FaultSpec&) const = default;
};

/// Errors: kInvalidArgument naming the entry and what is allowed.
Result<FaultSpec> parse_faults(std::string_view text);

/// `rank`: this rank, in the world.
std::unique_ptr<Transport> with_faults(std::unique_ptr<Transport> inner, const FaultSpec& spec, int rank);

}  // namespace tern
