// A cluster as the simulator sees it: groups of ranks inside groups, and the links that tie them together.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace tern {

/// What ties a group to the other groups of the one around it.
struct ClusterLink {
  std::string name;
  int count = 1;           ///< links of a group; its members are spread over them, neighbours together
  double bytes_per_s = 0;  ///< of each, in each direction
  double alpha = 0;        ///< s of a message whose outermost link this is
  bool full_duplex = true;
  bool inside_only = false;  ///< messages that leave the group around pass it by (NVLink beside NICs)
  bool operator==(const ClusterLink&) const = default;
};

/// A group: `size` groups of the level before, and how they reach its siblings. On level 0 a member is a
/// rank.
struct ClusterLevel {
  std::string name;  ///< "gpu", "node", "leaf", "site"
  int size = 1;
  ClusterLink link;
  bool operator==(const ClusterLevel&) const = default;
};

/// Speeds of what a rank computes on; bytes are those of the decoded vector.
struct ClusterDevice {
  std::string name;
  double copy_bytes_per_s = 0;    ///< copied: one read, one written
  double reduce_bytes_per_s = 0;  ///< of a sum of two operands: two read, one written
  double encode_bytes_per_s = 0;
  double decode_bytes_per_s = 0;
  double flops = 0;  ///< dense 16-bit floating point operations per s, for training steps; 0: not known
  bool operator==(const ClusterDevice&) const = default;
};

/// The links a message passes, and its latency.
struct ClusterPath {
  static constexpr int kMaxLinks = 12;
  std::array<int, kMaxLinks> links{};  ///< in order
  int n_links = 0;
  int level = 0;     ///< of the innermost group that holds both ends
  double alpha = 0;  ///< s
  std::span<const int> span() const { return {links.data(), static_cast<size_t>(n_links)}; }
};

/// Value type; ranks fill its groups in order. A link is numbered per level, group, place and direction.
class Cluster {
 public:
  std::string name;
  std::string source;  ///< where its figures come from
  int n_ranks = 1;
  ClusterDevice device;
  double message_overhead = 0;       ///< s of a rank per message sent and per message received
  double round_overhead = 0;         ///< s of a rank per round and segment
  std::vector<ClusterLevel> levels;  ///< from the inside out; around the last one is the whole cluster

  /// Numbers the links; call after a change of n_ranks or levels, before what follows.
  /// Errors: kInvalidArgument (no level, a size or speed that is not positive, members that cannot be spread
  /// evenly over links, more levels than a path can hold), naming the level and the value.
  Status prepare();

  int n_levels() const { return static_cast<int>(levels.size()); }
  /// Ranks of a full group of a level; level n_levels(): all ranks.
  int ranks_in(int level) const {
    return level < n_levels() ? ranks_in_[static_cast<size_t>(level)] : n_ranks;
  }
  int n_links() const { return first_link_.back(); }
  int level_of_link(int link) const;
  /// Number of a link among those of its level, direction included, counted from the group's first.
  int place_of_link(int link) const { return link - first_link_[static_cast<size_t>(level_of_link(link))]; }
  /// Links of each group of a level, directions counted apart.
  int links_per_group(int level) const;
  double bytes_per_s(int link) const;
  /// "node 3 nic 1 out".
  std::string link_name(int link) const;

  /// from != to. Cost: O(levels).
  ClusterPath path(int from, int to) const;

 private:
  int pools(int level) const;  // ways to choose from: links, or bundles of them, of a group
  std::vector<int> ranks_in_;
  std::vector<int> first_link_;  // by level, and the end
};

}  // namespace tern
