// Binomial tree over the ranks counted from the root: v's parent is v without its lowest set bit.
//
// broadcast: down the tree, the far half first. all_reduce: partial sums up to rank 0, then broadcast.
// barrier: the same with empty messages.
//
// Cost:    ceil(log2 p) rounds (all_reduce and barrier twice that), at most log2 p messages of n per rank.
// Wins:    small vectors at larger p, and broadcast until a pipeline pays. Loses: large all_reduce, n per
//          level instead of n/p.
// Codecs:  none, sums of sums travel.
// Source:  Thakur, Rabenseifner & Gropp, IJHPCA 2005.
#include "runtime/plan/builder.h"

namespace tern::tree {
namespace {

struct Node {
  int v;  ///< rank counted from the root
  int p, root;
  int n_levels;

  int rank_of(int other) const { return (other + root) % p; }
  /// The level at which v meets its parent: the index of its lowest set bit; the root's is above all.
  int level() const {
    int k = 0;
    while (k < n_levels && (v & (1 << k)) == 0) ++k;
    return k;
  }
  int parent() const { return rank_of(v & (v - 1)); }
};

void up(PlanBuilder& b, const Node& node, bool is_empty) {
  const int top = node.level();
  const Ref sum = is_empty ? nothing() : output(0);
  bool has_sum = false;
  for (int k = 0; k < top; ++k) {
    const int child = node.v + (1 << k);
    if (child >= node.p) break;
    if (is_empty) {
      b.recv(k, node.rank_of(child), sum);
      continue;
    }
    if (!has_sum) b.copy(k, input(0), sum);
    b.recv_reduce(k, node.rank_of(child), sum);
    has_sum = true;
  }
  if (node.v == 0) return;
  b.send(top, node.parent(), is_empty ? nothing() : (has_sum ? sum : input(0)));
}

void down(PlanBuilder& b, const Node& node, int first, Ref at_root) {
  const int top = node.level();
  const Ref received = at_root.n_chunks == 0 ? nothing() : output(0);
  if (node.v != 0) b.recv(first + node.n_levels - 1 - top, node.parent(), received);
  for (int k = top - 1; k >= 0; --k) {
    const int child = node.v + (1 << k);
    if (child >= node.p) continue;
    b.send(first + node.n_levels - 1 - k, node.rank_of(child), node.v == 0 ? at_root : received);
  }
}

}  // namespace

bool supports(const PlanRequest& request) {
  const Collective collective = request.collective;
  return collective == Collective::kAllReduce || collective == Collective::kBroadcast ||
         collective == Collective::kBarrier;
}

Plan build(const PlanRequest& request) {
  const int p = request.n_ranks;
  if (p == 1) return plan_alone(request, "tree");
  const bool is_broadcast = request.collective == Collective::kBroadcast;
  const bool is_barrier = request.collective == Collective::kBarrier;
  const int root = is_broadcast ? request.root : 0;
  const Node node{(request.rank - root + p) % p, p, root, ceil_log2(p)};
  PlanBuilder b(request, "tree", 1);
  if (is_broadcast) {
    down(b, node, 0, input(0));
    if (node.v == 0) b.copy(0, input(0), output(0));
    return std::move(b).finish(node.n_levels);
  }
  up(b, node, is_barrier);
  down(b, node, node.n_levels, is_barrier ? nothing() : output(0));
  return std::move(b).finish(2 * node.n_levels);
}

}  // namespace tern::tree
