#include "runtime/topology/cluster.h"

#include <algorithm>

namespace tern {
namespace {

Status check(const ClusterLevel& level) {
  const ClusterLink& link = level.link;
  if (level.size < 1) return error(Code::kInvalidArgument, "a {} of {} members", level.name, level.size);
  if (link.count < 1 || !(link.bytes_per_s > 0) || !(link.alpha >= 0))
    return error(Code::kInvalidArgument,
                 "{} {} links of {} byte/s and {} s; a group has 1 or more, of a positive speed", link.count,
                 link.name, link.bytes_per_s, link.alpha);
  if (level.size % link.count != 0 && link.count % level.size != 0)
    return error(
        Code::kInvalidArgument,
        "the {} members of a {} cannot be spread evenly over {} {} links; one number must divide the other",
        level.size, level.name, link.count, link.name);
  return {};
}

}  // namespace

Status Cluster::prepare() {
  if (levels.empty()) return error(Code::kInvalidArgument, "a cluster of no levels");
  if (2 * n_levels() > ClusterPath::kMaxLinks)
    return error(Code::kInvalidArgument, "{} levels; at most {}", n_levels(), ClusterPath::kMaxLinks / 2);
  if (n_ranks < 1) return error(Code::kInvalidArgument, "a cluster of {} ranks", n_ranks);
  ranks_in_.clear();
  first_link_ = {0};
  int64_t n = 1;
  for (int l = 0; l < n_levels(); ++l) {
    const ClusterLevel& level = levels[static_cast<size_t>(l)];
    TERN_TRY(check(level));
    n = std::min<int64_t>(n * level.size, INT32_MAX);  // a level larger than the world is one group
    ranks_in_.push_back(static_cast<int>(n));
    const int64_t n_groups = (n_ranks + n - 1) / n;
    first_link_.push_back(static_cast<int>(first_link_.back() + n_groups * links_per_group(l)));
  }
  return {};
}

int Cluster::pools(int level) const {
  const ClusterLevel& l = levels[static_cast<size_t>(level)];
  return std::min(l.link.count, l.size);
}

int Cluster::links_per_group(int level) const {
  return pools(level) * (levels[static_cast<size_t>(level)].link.full_duplex ? 2 : 1);
}

int Cluster::level_of_link(int link) const {
  return static_cast<int>(std::upper_bound(first_link_.begin(), first_link_.end(), link) -
                          first_link_.begin()) -
         1;
}

double Cluster::bytes_per_s(int link) const {
  const int level = level_of_link(link);
  const ClusterLink& l = levels[static_cast<size_t>(level)].link;
  return l.bytes_per_s * l.count / pools(level);
}

std::string Cluster::link_name(int link) const {
  const int level = level_of_link(link);
  const ClusterLevel& l = levels[static_cast<size_t>(level)];
  const int place = place_of_link(link);
  const int in_group = place % links_per_group(level);
  std::string text = fmt::format("{} {} {}", l.name, place / links_per_group(level), l.link.name);
  if (pools(level) > 1) text += fmt::format(" {}", l.link.full_duplex ? in_group / 2 : in_group);
  if (l.link.full_duplex) text += in_group % 2 == 0 ? " out" : " in";
  return text;
}

ClusterPath Cluster::path(int from, int to) const {
  ClusterPath path;
  int top = 0;  // the level whose group has both
  while (top < n_levels() && from / ranks_in(top) != to / ranks_in(top)) ++top;
  const auto link_of = [&](int level, int rank, int direction) {
    const ClusterLevel& l = levels[static_cast<size_t>(level)];
    const int group = rank / ranks_in(level);
    const int member = level == 0 ? rank % l.size : rank / ranks_in(level - 1) % l.size;
    const int pool = member * pools(level) / l.size;
    const int place = l.link.full_duplex ? 2 * pool + direction : pool;
    return first_link_[static_cast<size_t>(level)] + group * links_per_group(level) + place;
  };
  const auto is_passed = [&](int level) {
    return !levels[static_cast<size_t>(level)].link.inside_only || level + 1 == top;
  };
  const auto pass = [&](int link) { path.links[static_cast<size_t>(path.n_links++)] = link; };
  for (int level = 0; level < top; ++level)
    if (is_passed(level)) pass(link_of(level, from, 0));
  for (int level = top; level-- > 0;)
    if (is_passed(level)) pass(link_of(level, to, 1));
  path.level = top;
  if (top > 0) path.alpha = levels[static_cast<size_t>(top - 1)].link.alpha;
  return path;
}

}  // namespace tern
