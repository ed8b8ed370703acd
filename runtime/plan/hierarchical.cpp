// Hierarchical: what hosts can do inside, they do there, so that slow links between hosts carry the least.
//
// all_reduce: see hierarchical.h; direct inside, halving-doubling (encoded: direct) across. broadcast,
// reduce: between one rank of each host (a double tree), and inside from or to it. all_gather, reduce_scatter
// (hosts of equal size): a ring both ways among the ranks of equal place, and direct inside for what it
// brings or needs. barrier: inside, among the first ranks, inside.
//
// Cost:    between hosts, of H with s ranks each: all_reduce 2 (H-1)/H n/s per rank, all_gather and
//          reduce_scatter (H-1)/H n/s, broadcast and reduce n per host; inside, direct's bytes.
// Wins:    wherever links between hosts are slower than inside, the more the larger the hosts. Loses: nothing
//          but two rounds' latency; does not apply to one host, or to hosts of one rank.
// Codecs:  between hosts only: all_reduce and reduce_scatter by direct, so that hosts' sums are quantised
// once;
//          all_gather and broadcast forward what they got. reduce has no encoded form.
// Source:  Cho et al., BlueConnect, MLSys 2019; Karonis et al., IPDPS 2000 (leaders).
#include "runtime/plan/hierarchical.h"

#include <algorithm>
#include <set>

#include "runtime/plan/builder.h"
#include "runtime/plan/compose.h"

namespace tern {
namespace {

const Algorithm& row(std::string_view name) {
  return **find_algorithm(name);
}

/// Changes every ref of the steps.
template <class Change>
Plan with_refs(Plan plan, Change change) {
  for (Step& step : plan.steps) {
    if (has_src(step.kind)) change(step.src);
    if (has_dst(step.kind)) change(step.dst);
  }
  return plan;
}

/// Chunk c, one at a time, becomes chunk chunks[c] of a vector of `n_chunks`.
Plan on_chunks(Plan plan, std::span<const int> chunks, int n_chunks) {
  plan.n_chunks = n_chunks;
  return with_refs(std::move(plan), [&](Ref& ref) {
    TERN_CHECK(ref.n_chunks <= 1);
    if (ref.n_chunks == 1) ref.chunk = static_cast<int16_t>(chunks[static_cast<size_t>(ref.chunk)]);
  });
}

/// One rank's part in a hierarchy.
class Stages {
 public:
  Stages(const PlanRequest& request, const Groups& groups)
      : request_(request),
        groups_(groups),
        group_(groups_.group_of(request.rank)),
        place_(groups_.place_of(request.rank)) {
    for (int g = 0; g < groups_.size(); ++g) {
      leaders_.push_back(groups_.members(g).front());
      rail_.push_back(groups_.members(g)[static_cast<size_t>(place_) % groups_.members(g).size()]);
    }
    if (has_root(request.collective))
      leaders_[static_cast<size_t>(groups_.group_of(request.root))] = request.root;
  }

  const Groups& groups() const { return groups_; }
  int group() const { return group_; }
  int place() const { return place_; }
  int n_groups() const { return groups_.size(); }
  int host_size() const { return static_cast<int>(neighbours().size()); }
  /// The ranks of equal place on all hosts, which are of equal size.
  const std::vector<int>& rail() const { return rail_; }

  /// A collective of the rank's host, whose leader is the root; as many rounds on all hosts.
  Plan within(const Algorithm& algorithm, Collective collective) const {
    const int root = groups_.place_of(leader());
    Plan plan =
        algorithm.build({.collective = collective, .rank = place_, .n_ranks = host_size(), .root = root});
    plan = world(plan, neighbours());
    std::set<int> sizes;
    for (int g = 0; g < groups_.size(); ++g) sizes.insert(static_cast<int>(groups_.members(g).size()));
    for (const int n : sizes)
      plan.n_rounds =
          std::max(plan.n_rounds, algorithm.build({.collective = collective, .n_ranks = n}).n_rounds);
    return plan;
  }
  /// A collective among the leaders, with the world's root, or nothing to do.
  Plan among_leaders(const Algorithm& algorithm, Collective collective) const {
    const int root = has_root(collective) ? groups_.group_of(request_.root) : 0;
    Plan plan =
        algorithm.build({.collective = collective, .rank = group_, .n_ranks = n_groups(), .root = root});
    plan = world(plan, leaders_);
    if (request_.rank == leader()) return plan;
    plan.rank = request_.rank;
    plan.steps.clear();
    plan.n_scratch = plan.n_wire = 0;
    return plan;
  }
  Plan world(const Plan& plan, std::span<const int> members) const {
    return on_group(plan, members, request_.n_ranks).value();
  }
  /// The stages one after another, as one plan of the request.
  Plan finish(std::initializer_list<Plan> stages) const {
    Plan plan = *stages.begin();
    for (const Plan* stage = stages.begin() + 1; stage != stages.end(); ++stage)
      plan = sequence(plan, *stage).value();
    plan.collective = request_.collective;
    plan.algorithm = "hierarchical";
    plan.root = request_.root;
    plan.uneven = request_.uneven;
    plan.encoded |= request_.encoded;
    return plan;
  }
  int leader() const { return leaders_[static_cast<size_t>(group_)]; }

 private:
  std::span<const int> neighbours() const { return groups_.members(group_); }

  const PlanRequest& request_;
  const Groups& groups_;
  int group_, place_;
  std::vector<int> leaders_, rail_;  // by group
};

Status check(const Stages& stages, const Hierarchy& h) {
  const auto lacks = [](const Algorithm& algorithm, Collective collective, int n_ranks) {
    return error(Code::kUnsupported, "{} has no {} for {} ranks", algorithm.name, name(collective), n_ranks);
  };
  const int host_size = stages.groups().largest();
  for (const Collective c : {Collective::kReduceScatter, Collective::kAllGather})
    if (!h.within->supports({.collective = c, .n_ranks = host_size})) return lacks(*h.within, c, host_size);
  if (!h.across->supports({.collective = Collective::kAllReduce, .n_ranks = stages.n_groups()}))
    return lacks(*h.across, Collective::kAllReduce, stages.n_groups());
  if (h.encode_across && !h.across->can_encode())
    return error(Code::kUnsupported, "{} cannot be encoded: it would quantise at every hop", h.across->name);
  return {};
}

/// A stage between hosts, whose messages are encoded when `encoded`.
Plan maybe_encoded(const Plan& plan, bool encoded) {
  return encoded ? with_codec(plan).value() : plan;
}

/// The all_reduce across hosts of what earlier stages left in the output.
Result<Plan> across_all_reduce(const Hierarchy& h, int rank, int n_ranks) {
  const Plan plan =
      in_output(h.across->build({.collective = Collective::kAllReduce, .rank = rank, .n_ranks = n_ranks}));
  if (!h.encode_across) return plan;
  return with_codec(plan);
}

Result<Plan> all_reduce_by_rails(const Stages& s, const Hierarchy& h) {
  TERN_ASSIGN(const Plan across, across_all_reduce(h, s.group(), s.n_groups()));
  const int n_parts = across.n_chunks;  // of a place's share
  const Plan first = refine(s.within(*h.within, Collective::kReduceScatter), n_parts);
  const Plan last = refine(in_output(s.within(*h.within, Collective::kAllGather)), n_parts);
  return s.finish({first, s.world(on_chunk(across, s.place(), s.host_size()), s.rail()), last});
}

Result<Plan> all_reduce_by_leaders(const Stages& s, const Hierarchy& h) {
  const Plan dense = s.among_leaders(*h.across, Collective::kAllReduce);
  Plan across = in_output(dense);
  if (h.encode_across) {
    TERN_ASSIGN(across, with_codec(across));
  }
  const Plan first = refine(s.within(row("one_shot"), Collective::kReduce), dense.n_chunks);
  const Plan last = refine(in_output(s.within(row("direct"), Collective::kBroadcast)), dense.n_chunks);
  Plan plan = s.finish({first, across, last});
  // Also on ranks that take no part between hosts.
  TERN_ASSIGN(const Plan of_leader, across_all_reduce(h, 0, s.n_groups()));
  plan.encoded = of_leader.encoded;
  plan.encodes_sums = of_leader.encodes_sums;
  return plan;
}

Plan broadcast(const Stages& s, bool encoded) {
  const Plan across = maybe_encoded(s.among_leaders(row("double_tree"), Collective::kBroadcast), encoded);
  const Plan inside = in_output(s.within(row("direct"), Collective::kBroadcast));
  return s.finish({across, refine(inside, across.n_chunks)});
}

Plan reduce(const Stages& s, const PlanRequest& request) {
  const Plan across = in_output(s.among_leaders(row("double_tree"), Collective::kReduce));
  const Plan inside = s.within(row("one_shot"), Collective::kReduce);
  Plan plan = s.finish({refine(inside, across.n_chunks), across});
  if (request.rank == request.root) return plan;
  // Leaders that are not the root have no output: they keep their hosts' sums in scratch.
  const int first = plan.n_scratch;
  if (request.rank == s.leader()) plan.n_scratch += plan.n_chunks;
  return with_refs(std::move(plan), [first](Ref& ref) {
    if (ref.buffer == Buffer::kOutput)
      ref = make_ref(Buffer::kScratch, ref.chunk, ref.n_chunks, first + ref.chunk);
  });
}

Plan all_gather(const Stages& s, const PlanRequest& request) {
  const int p = request.n_ranks;
  const Plan local = row("bi_ring").build(
      {.collective = Collective::kAllGather, .rank = s.group(), .n_ranks = s.n_groups()});
  const Plan across = on_chunks(s.world(maybe_encoded(local, request.encoded), s.rail()), s.rail(), p);
  // Inside, the chunks of each host's ranks, which this host's have by place.
  const Plan of_one_host = in_output(s.within(row("direct"), Collective::kAllGather));
  Plan inside = of_one_host;
  inside.n_chunks = p;
  inside.steps.clear();
  for (int g = 0; g < s.n_groups(); ++g) {
    const Plan part = on_chunks(of_one_host, s.groups().members(g), p);
    inside.steps.insert(inside.steps.end(), part.steps.begin(), part.steps.end());
  }
  return s.finish({across, inside});
}

Plan reduce_scatter(const Stages& s, const PlanRequest& request) {
  const int p = request.n_ranks;
  // Inside, the sums that the ranks of this place need on all hosts: that of host g in place g of scratch.
  const Plan of_one_host = s.within(row("direct"), Collective::kReduceScatter);
  Plan inside = of_one_host;
  inside.n_chunks = p;
  inside.n_scratch = s.n_groups();
  inside.steps.clear();
  for (int g = 0; g < s.n_groups(); ++g) {
    const Plan part = with_refs(on_chunks(of_one_host, s.groups().members(g), p), [g](Ref& ref) {
      if (ref.buffer == Buffer::kOutput) ref = make_ref(Buffer::kScratch, ref.chunk, 1, g);
    });
    inside.steps.insert(inside.steps.end(), part.steps.begin(), part.steps.end());
  }
  const Algorithm& across = row(request.encoded ? "direct" : "bi_ring");
  Plan local = maybe_encoded(
      across.build({.collective = Collective::kReduceScatter, .rank = s.group(), .n_ranks = s.n_groups()}),
      request.encoded);
  local = with_refs(std::move(local), [n = s.n_groups()](Ref& ref) {
    if (ref.buffer == Buffer::kScratch) ref.slot = static_cast<int16_t>(ref.slot + n);
    if (ref.buffer == Buffer::kInput) ref = make_ref(Buffer::kScratch, ref.chunk, 1, ref.chunk);
  });
  local.n_scratch += s.n_groups();
  return s.finish({inside, on_chunks(s.world(local, s.rail()), s.rail(), p)});
}

Plan barrier(const Stages& s) {
  const Plan inside = s.within(row("one_shot"), Collective::kBarrier);
  return s.finish({inside, s.among_leaders(row("dissemination"), Collective::kBarrier), inside});
}

}  // namespace

Result<Plan> hierarchical_all_reduce(const PlanRequest& request, const Groups& groups,
                                     const Hierarchy& hierarchy) {
  const Stages stages(request, groups);
  TERN_TRY(check(stages, hierarchy));
  return groups.are_equal() ? all_reduce_by_rails(stages, hierarchy)
                            : all_reduce_by_leaders(stages, hierarchy);
}

namespace hierarchical {

bool supports(const PlanRequest& request) {
  const Collective c = request.collective;
  const bool needs_equal = c == Collective::kAllGather || c == Collective::kReduceScatter;
  const bool has = needs_equal || c == Collective::kAllReduce || c == Collective::kBroadcast ||
                   c == Collective::kReduce || c == Collective::kBarrier;
  if (request.encoded && (c == Collective::kReduce || c == Collective::kBarrier)) return false;
  if (!has || request.n_ranks == 1) return has;
  if (request.node_of.empty()) return false;
  const Groups groups(request.node_of);
  return groups.size() > 1 && groups.largest() > 1 && (groups.are_equal() || !needs_equal);
}

Plan build(const PlanRequest& request) {
  if (request.n_ranks == 1) return plan_alone(request, "hierarchical");
  const Groups groups(request.node_of);
  const Stages stages(request, groups);
  switch (request.collective) {
    case Collective::kBroadcast:
      return broadcast(stages, request.encoded);
    case Collective::kReduce:
      return reduce(stages, request);
    case Collective::kAllGather:
      return all_gather(stages, request);
    case Collective::kReduceScatter:
      return reduce_scatter(stages, request);
    case Collective::kBarrier:
      return barrier(stages);
    default:
      return hierarchical_all_reduce(request, groups,
                                     {.within = &row("direct"),
                                      .across = &row(request.encoded ? "direct" : "halving_doubling"),
                                      .encode_across = request.encoded})
          .value();
  }
}

}  // namespace hierarchical
}  // namespace tern
