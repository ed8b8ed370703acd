// Which transport joins which ranks: a pure function of what every rank can use.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace tern {

/// Where a rank is, as seen by one row of the registry.
struct Domain {
  std::string name;     ///< ranks with equal names can connect; "" when the rank cannot use the row
  std::string why_not;  ///< the reason then
};

struct Domains {
  int rank = -1;             ///< in the world
  std::vector<Domain> rows;  ///< in order of preference
};

/// Connections to make, and which of them leads to which member.
struct Routes {
  struct Join {
    size_t row = 0;
    std::vector<int> members;  ///< places in the list of members, ascending; this rank's among them
    bool operator==(const Join&) const = default;
  };
  std::vector<Join> joins;
  std::vector<size_t> join_of;  ///< by member; of this rank itself: 0
};

/// Every pair takes the first row whose domain it shares. A row connects a whole domain or none of it: all of
/// it as soon as one pair inside needs it, so that connecting is collective. domains: by member; equal on all
/// members. self: this rank's place. Cost: O(p^2 * rows). Errors, equal on all members: kUnsupported naming
/// the first pair that no row joins, with the reasons.
Result<Routes> choose_routes(std::span<const Domains> domains, size_t self);

/// Nothing when row `row` joins all members; else kUnsupported naming the first member that it does not, and
/// why.
Status joins_all(std::span<const Domains> domains, size_t row, std::string_view row_name);

}  // namespace tern
