#include "runtime/plan/splitting.h"

#include <algorithm>
#include <array>

#include "runtime/plan/builder.h"

namespace tern::splitting {
namespace {

struct Range {
  int lo, hi;
  int size() const { return hi - lo; }
  Ref in(Buffer buffer) const { return make_ref(buffer, lo, size(), 0); }
  /// Part `i` of `n`.
  Range part(int i, int n) const { return {lo + size() * i / n, lo + size() * (i + 1) / n}; }
};

/// Another part of a group, seen from a rank.
struct Other {
  Range chunks{};
  int sends_to = -1;  ///< partner that gets `chunks` in a reduce_scatter
  int n_from = 0;     ///< partners that send what this rank keeps: 0 to 2
  std::array<int, 2> from{};
};

/// One split of the group that holds a rank, seen from that rank.
struct Split {
  Range kept{};
  int n_others = 0;
  std::array<Other, kMaxRadix - 1> others{};
};

Other other_part(const Range& own, const Range& chunks, int rank) {
  Other o;
  o.chunks = chunks;
  const int place = rank - own.lo;
  o.sends_to = chunks.lo + std::min(place, chunks.size() - 1);
  if (place < chunks.size()) o.from[static_cast<size_t>(o.n_from++)] = chunks.lo + place;
  const bool takes_extra = place == own.size() - 1 && chunks.size() > own.size();
  if (takes_extra) o.from[static_cast<size_t>(o.n_from++)] = chunks.hi - 1;
  return o;
}

Split split_of(const Range& group, int rank, int radix) {
  const int n_parts = std::min(radix, group.size());
  Split s;
  for (int i = 0; i < n_parts; ++i) {
    const Range part = group.part(i, n_parts);
    if (part.lo <= rank && rank < part.hi) s.kept = part;
  }
  for (int i = 0; i < n_parts; ++i) {
    const Range part = group.part(i, n_parts);
    if (part.lo != s.kept.lo) s.others[static_cast<size_t>(s.n_others++)] = other_part(s.kept, part, rank);
  }
  return s;
}

/// The splits of a rank, from the whole world down to the rank alone.
std::vector<Split> splits_of(const PlanRequest& request, int radix) {
  std::vector<Split> splits;
  for (Range group{0, request.n_ranks}; group.size() > 1; group = splits.back().kept)
    splits.push_back(split_of(group, request.rank, radix));
  return splits;
}

std::span<const Other> others(const Split& s) {
  return {s.others.data(), static_cast<size_t>(s.n_others)};
}
std::span<const int> from(const Other& o) {
  return {o.from.data(), static_cast<size_t>(o.n_from)};
}

/// Where a reduce_scatter keeps a range of partial sums: places follow the chunks of the first kept part.
Ref in_scratch(const Range& range, const Range& first_kept) {
  return make_ref(Buffer::kScratch, range.lo, range.size(), range.lo - first_kept.lo);
}

/// Appends the reducing rounds, one per level from round 0. The sums end in kOutput chunk `rank`.
void reduce_rounds(PlanBuilder& b, const std::vector<Split>& splits, bool sums_in_output) {
  bool has_sums = false;  // before its first receive, a rank's share is its input
  const auto sums = [&](const Range& range) {
    return sums_in_output ? range.in(Buffer::kOutput) : in_scratch(range, splits.front().kept);
  };
  for (size_t level = 0; level < splits.size(); ++level) {
    const Split& s = splits[level];
    const int round = static_cast<int>(level);
    const auto own = [&](const Range& range) { return has_sums ? sums(range) : range.in(Buffer::kInput); };
    const Ref dst = s.kept.size() == 1 ? s.kept.in(Buffer::kOutput) : sums(s.kept);
    bool receives = false;
    for (const Other& o : others(s)) {
      b.send(round, o.sends_to, own(o.chunks));
      receives = receives || o.n_from > 0;
    }
    if (!receives) continue;
    if (own(s.kept) != dst) b.copy(round, own(s.kept), dst);
    for (const Other& o : others(s))
      for (const int peer : from(o)) b.recv_reduce(round, peer, dst);
    has_sums = true;
  }
}

/// Appends the gathering rounds: the reducing ones, mirrored; level l in round `last - l`. own: where the
/// rank's chunk is.
void gather_rounds(PlanBuilder& b, const std::vector<Split>& splits, int last, Buffer own) {
  for (size_t level = splits.size(); level-- > 0;) {
    const Split& s = splits[level];
    const int round = last - static_cast<int>(level);
    const Ref src = s.kept.in(s.kept.size() == 1 ? own : Buffer::kOutput);
    for (const Other& o : others(s)) {
      for (const int peer : from(o)) b.send(round, peer, src);
      b.recv(round, o.sends_to, o.chunks.in(Buffer::kOutput));
    }
  }
}

}  // namespace

Plan build(const PlanRequest& request, std::string_view algorithm, int radix) {
  if (request.n_ranks == 1) return plan_alone(request, algorithm);
  const std::vector<Split> splits = splits_of(request, radix);
  const int n_levels = ceil_log(request.n_ranks, radix);
  PlanBuilder b(request, algorithm, request.n_ranks);
  if (request.n_ranks > radix) b.moves_runs();
  if (request.collective == Collective::kAllGather) {
    b.copy(0, input(request.rank), output(request.rank));
    gather_rounds(b, splits, n_levels - 1, Buffer::kInput);
    return std::move(b).finish(n_levels);
  }
  reduce_rounds(b, splits, request.collective == Collective::kAllReduce);
  if (request.collective == Collective::kReduceScatter) return std::move(b).finish(n_levels);
  gather_rounds(b, splits, 2 * n_levels - 1, Buffer::kOutput);
  return std::move(b).finish(2 * n_levels);
}

}  // namespace tern::splitting
