#include "runtime/transport/member_exchange.h"

#include <algorithm>

namespace tern {

size_t Members::self() const {
  const auto at = std::find(ranks.begin(), ranks.end(), world.rank);
  TERN_CHECK(at != ranks.end());
  return static_cast<size_t>(at - ranks.begin());
}

Result<std::vector<std::string>> exchange(const Members& members, std::string_view topic,
                                          std::string_view value) {
  Store& store = *members.world.store;
  const auto key_of = [&](int rank) { return fmt::format("{}/{}/{}", members.key, topic, rank); };
  TERN_TRY(store.set(key_of(members.world.rank), value));
  std::vector<std::string> values;
  for (const int rank : members.ranks) {
    auto theirs = store.get(key_of(rank), members.deadline);
    if (!theirs.ok() && theirs.error().code == Code::kTimeout) {
      return error_at(rank, Code::kTimeout,
                      "rank {} did not come to the making of a communicator within {:.3g} s", rank,
                      members.world.config.bootstrap_timeout.count());
    }
    TERN_TRY(theirs);
    values.push_back(std::move(*theirs));
  }
  return values;
}

}  // namespace tern
