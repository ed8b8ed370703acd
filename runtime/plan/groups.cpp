#include "runtime/plan/groups.h"

#include <algorithm>

namespace tern {

Groups::Groups(std::span<const int> node_of) {
  constexpr int kNone = -1;
  const int most = node_of.empty() ? 0 : *std::max_element(node_of.begin(), node_of.end());
  std::vector<int> group_of_node(static_cast<size_t>(most) + 1, kNone);
  std::vector<int> sizes;
  for (const int node : node_of) {
    int& group = group_of_node[static_cast<size_t>(node)];
    if (group == kNone) {
      group = static_cast<int>(sizes.size());
      sizes.push_back(0);
    }
    group_of_.push_back(group);
    place_of_.push_back(sizes[static_cast<size_t>(group)]++);
  }
  begin_.push_back(0);
  for (const int n : sizes) begin_.push_back(begin_.back() + static_cast<size_t>(n));
  members_.resize(node_of.size());
  for (size_t rank = 0; rank < node_of.size(); ++rank)
    members_[begin_[static_cast<size_t>(group_of_[rank])] + static_cast<size_t>(place_of_[rank])] =
        static_cast<int>(rank);
}

int Groups::largest() const {
  size_t n = 0;
  for (int g = 0; g < size(); ++g) n = std::max(n, members(g).size());
  return static_cast<int>(n);
}

bool Groups::are_equal() const {
  for (int g = 1; g < size(); ++g)
    if (members(g).size() != members(0).size()) return false;
  return true;
}

}  // namespace tern
