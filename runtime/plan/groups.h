// The hosts of a world as groups of ranks.
#pragma once

#include <span>
#include <vector>

namespace tern {

/// Groups of ranks, by host. Value type.
class Groups {
 public:
  /// node_of: by rank, the number of its host, 0 or more; gaps cost memory. Groups are in the order of their
  /// first ranks. Cost: O(ranks + largest number).
  explicit Groups(std::span<const int> node_of);

  int size() const { return static_cast<int>(begin_.size()) - 1; }
  /// The ranks of a group, ascending. Lives as long as the groups.
  std::span<const int> members(int group) const {
    const auto g = static_cast<size_t>(group);
    return std::span(members_).subspan(begin_[g], begin_[g + 1] - begin_[g]);
  }
  int group_of(int rank) const { return group_of_[static_cast<size_t>(rank)]; }
  /// The rank's place among its group's members.
  int place_of(int rank) const { return place_of_[static_cast<size_t>(rank)]; }
  int largest() const;
  /// Whether all groups have as many ranks.
  bool are_equal() const;
  /// The group of each rank, numbered from 0 without gaps; empty when there is one group.
  std::vector<int> numbered() const { return size() < 2 ? std::vector<int>{} : group_of_; }

 private:
  std::vector<int> group_of_, place_of_;  // by rank
  std::vector<size_t> begin_;             // by group: its first member, and the end
  std::vector<int> members_;              // by group
};

}  // namespace tern
