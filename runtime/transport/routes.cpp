#include "runtime/transport/routes.h"

#include <algorithm>
#include <optional>

namespace tern {
namespace {

bool can_connect(const Domain& a, const Domain& b) {
  return !a.name.empty() && a.name == b.name;
}

std::optional<size_t> row_of_pair(const Domains& a, const Domains& b) {
  for (size_t row = 0; row < a.rows.size(); ++row) {
    if (can_connect(a.rows[row], b.rows[row])) return row;
  }
  return std::nullopt;
}

Error no_row_joins(const Domains& a, const Domains& b) {
  std::string reasons;
  for (const Domains* member : {&a, &b}) {
    for (const Domain& domain : member->rows) {
      if (!domain.why_not.empty()) reasons += fmt::format("; rank {}: {}", member->rank, domain.why_not);
    }
  }
  return error_at(b.rank, Code::kUnsupported, "no transport joins ranks {} and {}{}", a.rank, b.rank,
                  reasons);
}

}  // namespace

Result<Routes> choose_routes(std::span<const Domains> domains, size_t self) {
  const size_t n_rows = domains[self].rows.size();
  // needed[row][member]: some pair inside the member's domain takes the row.
  std::vector<std::vector<bool>> needed(n_rows, std::vector<bool>(domains.size(), false));
  for (size_t a = 0; a < domains.size(); ++a) {
    for (size_t b = a + 1; b < domains.size(); ++b) {
      const auto row = row_of_pair(domains[a], domains[b]);
      if (!row) return no_row_joins(domains[a], domains[b]);
      needed[*row][a] = true;
    }
  }

  Routes routes;
  routes.join_of.assign(domains.size(), 0);
  for (size_t row = 0; row < n_rows; ++row) {
    Routes::Join join{row, {}};
    bool is_needed = false;
    for (size_t member = 0; member < domains.size(); ++member) {
      if (member != self && !can_connect(domains[self].rows[row], domains[member].rows[row])) continue;
      join.members.push_back(static_cast<int>(member));
      is_needed = is_needed || needed[row][member];
    }
    if (!is_needed) continue;
    for (size_t member = 0; member < domains.size(); ++member) {
      if (row_of_pair(domains[self], domains[member]) == row) routes.join_of[member] = routes.joins.size();
    }
    routes.joins.push_back(std::move(join));
  }
  routes.join_of[self] = 0;
  return routes;
}

Status joins_all(std::span<const Domains> domains, size_t row, std::string_view row_name) {
  const Domains& first = domains.front();
  for (const Domains& member : domains) {
    const Domain& domain = member.rows[row];
    if (domain.name.empty()) {
      return error_at(member.rank, Code::kUnsupported, "rank {} cannot use the transport {}: {}", member.rank,
                      row_name, domain.why_not);
    }
    if (domain.name != first.rows[row].name) {
      return error_at(member.rank, Code::kUnsupported,
                      "the transport {} does not join ranks {} and {}: they are in \"{}\" and \"{}\"",
                      row_name, first.rank, member.rank, first.rows[row].name, domain.name);
    }
  }
  return {};
}

}  // namespace tern
