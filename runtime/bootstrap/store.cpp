#include "runtime/bootstrap/store.h"

#include <fmt/ranges.h>

#include <numeric>

#include "runtime/bootstrap/fields.h"

namespace tern {
namespace {

std::string part_key(std::string_view key, int rank) {
  return fmt::format("{}/{}", key, rank);
}
std::string whole_key(std::string_view key) {
  return fmt::format("{}/all", key);
}

// The ranks whose value is not there, and how to say so.
Error name_missing(Store& store, const Exchange& part, std::span<const int> members,
                   Clock::time_point start) {
  std::vector<int> missing;
  for (const int rank : members) {
    const auto theirs = store.get(part_key(part.key, rank), Deadline(Clock::now()));
    if (theirs) continue;
    // Somebody else knew first, or the store cannot be asked any more.
    if (const auto failure = store.failure()) return *failure;
    if (theirs.error().code != Code::kTimeout) return theirs.error();
    missing.push_back(rank);
  }
  const double waited = seconds_since(start);
  if (missing.empty()) {
    return error_at(members.front(), Code::kTimeout,
                    "rank {} did not hand on what all ranks said at {} within {:.3g} s", members.front(),
                    part.occasion, waited);
  }
  const auto unproven = store.get(kUnprovenKey, Deadline(Clock::now()));
  return error_at(missing.front(), Code::kTimeout, "{} {} of {} did not come to {} within {:.3g} s{}{}",
                  missing.size() == 1 ? "rank" : "ranks", fmt::join(missing, ", "), members.size(),
                  part.occasion, waited, unproven.ok() && !unproven->empty() ? "; " : "",
                  unproven.ok() ? *unproven : "");
}

Result<std::vector<std::string>> unpack(std::string_view bytes, size_t n_values) {
  std::vector<std::string> values;
  FieldReader reader(bytes);
  while (const auto value = reader.text()) values.emplace_back(*value);
  if (!reader.at_end() || values.size() != n_values) {
    return error(Code::kCorrupt, "the store handed out {} values where {} ranks exchange", values.size(),
                 n_values);
  }
  return values;
}

}  // namespace

// The first member collects and publishes: 2p requests to the store in all instead of p * p.
Result<std::vector<std::string>> exchange_among(Store& store, int rank, std::span<const int> members,
                                                const Exchange& part) {
  const auto& [key, value, deadline, occasion] = part;
  const auto start = Clock::now();
  TERN_TRY(store.set(part_key(key, rank), value));
  if (rank == members.front()) {
    std::string all;
    for (const int member : members) {
      const auto theirs = store.get(part_key(key, member), deadline);
      if (!theirs && theirs.error().code == Code::kTimeout) return name_missing(store, part, members, start);
      TERN_TRY(theirs.status());
      append_text(all, *theirs);
    }
    TERN_TRY(store.set(whole_key(key), all));
    return unpack(all, members.size());
  }
  const auto all = store.get(whole_key(key), deadline);
  if (!all && all.error().code == Code::kTimeout) return name_missing(store, part, members, start);
  TERN_TRY(all.status());
  return unpack(*all, members.size());
}

Result<std::vector<std::string>> exchange(Store& store, int rank, int n_ranks, const Exchange& part) {
  std::vector<int> members(static_cast<size_t>(n_ranks));
  std::iota(members.begin(), members.end(), 0);
  return exchange_among(store, rank, members, part);
}

}  // namespace tern
