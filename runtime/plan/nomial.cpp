#include "runtime/plan/nomial.h"

#include <algorithm>

#include "runtime/plan/builder.h"

namespace tern::nomial {
namespace {

struct Node {
  int v;  ///< rank counted from the root
  int p, root, radix;
  int n_levels;  ///< digits of the ranks
  int level;     ///< of v's lowest digit that is not 0; the root's is n_levels

  int rank_of(int other) const { return (other + root) % p; }
  int stride(int at) const {
    int n = 1;
    for (int k = 0; k < at; ++k) n *= radix;
    return n;
  }
  bool is_root() const { return v == 0; }
  int parent() const {
    const int n = stride(level);
    return rank_of(v - v / n % radix * n);
  }
  /// How many ranks v leads, itself included.
  int size() const { return is_root() ? p : std::min(stride(level), p - v); }
};

Node node_of(const PlanRequest& r, int root, int radix) {
  const int n_levels = ceil_log(r.n_ranks, radix);
  Node node{(r.rank - root + r.n_ranks) % r.n_ranks, r.n_ranks, root, radix, n_levels, n_levels};
  if (node.v == 0) return node;
  for (node.level = 0; node.v / node.stride(node.level) % radix == 0;) ++node.level;
  return node;
}

/// visit(child, how many it leads, level) for each child of the node at `level`.
template <class Visit>
void each_child(const Node& node, int level, Visit visit) {
  const int stride = node.stride(level);
  for (int d = 1; d < node.radix; ++d) {
    const int child = node.v + d * stride;
    if (child < node.p) visit(child, std::min(stride, node.p - child));
  }
}

/// Sums up the tree, to `sum` at nodes with children; empty messages where sum is nothing.
void up(PlanBuilder& b, const Node& node, Ref sum) {
  const bool is_empty = sum.n_chunks == 0;
  bool has_sum = false;
  for (int level = 0; level < node.level; ++level)
    each_child(node, level, [&](int child, int) {
      if (is_empty) {
        b.recv(level, node.rank_of(child), sum);
        return;
      }
      if (!has_sum) b.copy(level, input(0), sum);
      b.recv_reduce(level, node.rank_of(child), sum);
      has_sum = true;
    });
  if (node.is_root()) return;
  b.send(node.level, node.parent(), is_empty || has_sum ? sum : input(0));
}

/// The root's vector down the tree from round `first`.
void down(PlanBuilder& b, const Node& node, int first, Ref at_root) {
  const Ref received = at_root.n_chunks == 0 ? nothing() : output(0);
  const auto round = [&](int level) { return first + node.n_levels - 1 - level; };
  if (!node.is_root()) b.recv(round(node.level), node.parent(), received);
  for (int level = node.level - 1; level >= 0; --level)
    each_child(node, level, [&](int child, int) {
      b.send(round(level), node.rank_of(child), node.is_root() ? at_root : received);
    });
}

struct Led {
  int leader;
  int n;  ///< ranks that it leads
};

/// visit(run) for the chunks of the ranks that a leader leads: one run, or two round the end of the vector.
/// place(chunk, n, slot) makes the ref; slots count from the node's own chunk.
template <class Place, class Visit>
void each_run(const Node& node, Led led, Place place, Visit visit) {
  const auto [leader, n] = led;
  const int chunk = node.rank_of(leader);
  const int until_end = std::min(n, node.p - chunk);
  visit(place(chunk, until_end, leader - node.v));
  if (until_end < n) visit(place(0, n - until_end, leader - node.v + until_end));
}

Ref in_scratch(int chunk, int n, int slot) {
  return make_ref(Buffer::kScratch, chunk, n, slot);
}

void gather(PlanBuilder& b, const Node& node, int rank) {
  const auto place = [&](int chunk, int n, int slot) {
    return node.is_root() ? output(chunk, n) : in_scratch(chunk, n, slot);
  };
  const bool is_leaf = node.size() == 1;
  if (node.is_root() || !is_leaf) b.copy(0, input(rank), place(rank, 1, 0));
  for (int level = 0; level < node.level; ++level)
    each_child(node, level, [&](int child, int n) {
      each_run(node, {child, n}, place, [&](Ref run) { b.recv(level, node.rank_of(child), run); });
    });
  if (node.is_root()) return;
  if (is_leaf) {
    b.send(node.level, node.parent(), input(rank));
    return;
  }
  each_run(node, {node.v, node.size()}, place, [&](Ref run) { b.send(node.level, node.parent(), run); });
}

void scatter(PlanBuilder& b, const Node& node, int rank) {
  const auto place = [&](int chunk, int n, int slot) {
    return node.is_root() ? input(chunk, n) : in_scratch(chunk, n, slot);
  };
  const auto round = [&](int level) { return node.n_levels - 1 - level; };
  if (node.is_root()) {
    b.copy(0, input(rank), output(rank));
  } else if (node.size() == 1) {
    b.recv(round(node.level), node.parent(), output(rank));
  } else {
    each_run(node, {node.v, node.size()}, place,
             [&](Ref run) { b.recv(round(node.level), node.parent(), run); });
    b.copy(round(node.level), place(rank, 1, 0), output(rank));
  }
  for (int level = node.level - 1; level >= 0; --level)
    each_child(node, level, [&](int child, int n) {
      each_run(node, {child, n}, place, [&](Ref run) { b.send(round(level), node.rank_of(child), run); });
    });
}

}  // namespace

Plan build(const PlanRequest& request, std::string_view algorithm, int radix) {
  if (request.n_ranks == 1) return plan_alone(request, algorithm);
  const Collective c = request.collective;
  const bool is_of_chunks = owners_fixed(c);
  const Node node = node_of(request, has_root(c) ? request.root : 0, radix);
  PlanBuilder b(request, algorithm, is_of_chunks ? request.n_ranks : 1);
  if (is_of_chunks && request.n_ranks > radix) b.moves_runs();
  int n_rounds = node.n_levels;
  switch (c) {
    case Collective::kBroadcast:
      down(b, node, 0, input(0));
      if (node.is_root()) b.copy(0, input(0), output(0));
      break;
    case Collective::kReduce:
      up(b, node, node.is_root() ? output(0) : in_scratch(0, 1, 0));
      break;
    case Collective::kGather:
      gather(b, node, request.rank);
      break;
    case Collective::kScatter:
      scatter(b, node, request.rank);
      break;
    default: {
      const Ref sum = c == Collective::kBarrier ? nothing() : output(0);
      up(b, node, sum);
      down(b, node, node.n_levels, sum);
      n_rounds *= 2;
    }
  }
  return std::move(b).finish(n_rounds);
}

}  // namespace tern::nomial
