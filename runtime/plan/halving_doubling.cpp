// Recursive halving (reduce_scatter), doubling (all_gather), both (all_reduce), for any number of ranks.
//
// A group of ranks [lo, hi) owns the chunks [lo, hi). It splits in two halves; every rank sends the other
// half's chunks to its partner there and adds what it gets to its own half's; then each half goes on alone,
// until rank r has chunk r. An odd group's right half has one rank more: that one gives its share to the
// last rank of the left half and gets none, so that no rank count needs a round or a copy of its own.
// all_gather runs the same exchanges backwards.
//
// Cost:    ceil(log2 p) messages and about n (p-1)/p per rank (all_reduce twice that); all_gather sends one
//          message more per level where a group is odd.
// Wins:    middle sizes, the ring's bytes in log p rounds. Loses: where far partners share links.
// Codecs:  none, sums of sums travel.
// Sources: Rabenseifner, ICCS 2004; Thakur et al., IJHPCA 2005; Traeff, EuroPVM/MPI 2005 (any p).
#include <array>

#include "runtime/plan/builder.h"

namespace tern::halving_doubling {
namespace {

struct Range {
  int lo, hi;
  int size() const { return hi - lo; }
  Ref in(Buffer buffer) const { return make_ref(buffer, lo, size(), 0); }
};

/// One split of the group that holds a rank, seen from that rank.
struct Split {
  Range kept, given;  ///< chunks of this rank's half, and of the other's
  int sends_to = -1;  ///< partner that gets `given` in halving
  int n_from = 0;     ///< partners that send `kept` in halving: 0 to 2
  std::array<int, 2> from{};
};

Split split_of(const Range& group, int rank) {
  const int mid = group.lo + group.size() / 2;
  const Range left{group.lo, mid};
  const Range right{mid, group.hi};
  const bool is_odd = right.size() > left.size();
  Split s;
  if (rank < mid) {
    s.kept = left;
    s.given = right;
    s.sends_to = mid + (rank - group.lo);
    s.from[static_cast<size_t>(s.n_from++)] = s.sends_to;
    if (is_odd && rank == mid - 1) s.from[static_cast<size_t>(s.n_from++)] = group.hi - 1;
  } else {
    s.kept = right;
    s.given = left;
    const bool is_extra = is_odd && rank == group.hi - 1;
    s.sends_to = is_extra ? mid - 1 : group.lo + (rank - mid);
    if (!is_extra) s.from[static_cast<size_t>(s.n_from++)] = s.sends_to;
  }
  return s;
}

/// The splits of a rank, from the whole world down to the rank alone.
std::vector<Split> splits_of(const PlanRequest& request) {
  std::vector<Split> splits;
  for (Range group{0, request.n_ranks}; group.size() > 1; group = splits.back().kept)
    splits.push_back(split_of(group, request.rank));
  return splits;
}

/// Where a reduce_scatter keeps a range of partial sums: places follow the chunks of the first kept half.
Ref in_scratch(const Range& range, const Range& first_kept) {
  return make_ref(Buffer::kScratch, range.lo, range.size(), range.lo - first_kept.lo);
}

/// Appends the halving rounds, one per level from round 0. The sums end in kOutput chunk `rank`.
void halve(PlanBuilder& b, const std::vector<Split>& splits, bool sums_in_output) {
  bool has_sums = false;  // before its first receive, a rank's share is its input
  const auto sums = [&](const Range& range) {
    return sums_in_output ? range.in(Buffer::kOutput) : in_scratch(range, splits.front().kept);
  };
  for (size_t level = 0; level < splits.size(); ++level) {
    const Split& s = splits[level];
    const int round = static_cast<int>(level);
    const auto own = [&](const Range& range) { return has_sums ? sums(range) : range.in(Buffer::kInput); };
    b.send(round, s.sends_to, own(s.given));
    if (s.n_from == 0) continue;
    const Ref dst = s.kept.size() == 1 ? s.kept.in(Buffer::kOutput) : sums(s.kept);
    if (own(s.kept) != dst) b.copy(round, own(s.kept), dst);
    for (int i = 0; i < s.n_from; ++i) b.recv_reduce(round, s.from[static_cast<size_t>(i)], dst);
    has_sums = true;
  }
}

/// Appends the doubling rounds: the halving's, mirrored; level l in round `last - l`. own: where the rank's
/// chunk is.
void gather(PlanBuilder& b, const std::vector<Split>& splits, int last, Buffer own) {
  for (size_t level = splits.size(); level-- > 0;) {
    const Split& s = splits[level];
    const int round = last - static_cast<int>(level);
    const Ref src = s.kept.in(s.kept.size() == 1 ? own : Buffer::kOutput);
    for (int i = 0; i < s.n_from; ++i) b.send(round, s.from[static_cast<size_t>(i)], src);
    b.recv(round, s.sends_to, s.given.in(Buffer::kOutput));
  }
}

}  // namespace

bool supports(const PlanRequest& request) {
  const Collective collective = request.collective;
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter ||
         collective == Collective::kAllGather;
}

Plan build(const PlanRequest& request) {
  if (request.n_ranks == 1) return plan_alone(request, "halving_doubling");
  const std::vector<Split> splits = splits_of(request);
  const int n_levels = ceil_log2(request.n_ranks);
  PlanBuilder b(request, "halving_doubling", request.n_ranks);
  if (request.n_ranks > 2) b.moves_runs();
  if (request.collective == Collective::kAllGather) {
    b.copy(0, input(request.rank), output(request.rank));
    gather(b, splits, n_levels - 1, Buffer::kInput);
    return std::move(b).finish(n_levels);
  }
  halve(b, splits, request.collective == Collective::kAllReduce);
  if (request.collective == Collective::kReduceScatter) return std::move(b).finish(n_levels);
  gather(b, splits, 2 * n_levels - 1, Buffer::kOutput);
  return std::move(b).finish(2 * n_levels);
}

}  // namespace tern::halving_doubling
