// How the members of a communicator that is being connected tell each other small values.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/bootstrap/world.h"

namespace tern {

/// The ranks that connect, and the part of the store that is theirs.
struct Members {
  const World& world;
  std::span<const int> ranks;  ///< world ranks, ascending, with this rank among them
  std::string_view key;        ///< of this connection
  Deadline deadline;

  size_t self() const;  ///< this rank's place in `ranks`
  int lowest() const { return ranks.front(); }
};

/// Every member's value under `topic`, in order of `ranks`. Also a barrier: nobody returns before all have
/// called. Errors: kTimeout, kPeerLost, naming the rank that did not come.
Result<std::vector<std::string>> exchange(const Members& members, std::string_view topic,
                                          std::string_view value);

}  // namespace tern
