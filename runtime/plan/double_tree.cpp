// Two binary trees at once, each for half of the vector; who is an inner node of one is a leaf of the other.
//
// The trees' nodes are numbered in order, so that odd places are leaves; the second tree's places are those
// of the first mirrored (even number of nodes) or shifted by one (odd). all_reduce: over all ranks, up and
// down each tree. broadcast: the root feeds both trees' roots, the trees are those of the other ranks.
// reduce: the same upwards.
//
// Cost:    about 2 log2 p rounds (broadcast, reduce: log2 p + 1), which the segments fill; per rank at most
//          n in and n out (all_reduce: 2 n).
// Wins:    middle and large vectors on many ranks: the chain's bytes in the tree's rounds. Loses: all_reduce
//          of huge vectors by a factor of up to p/(p-1) of reducing at inner nodes only, to the ring.
// Codecs:  none, sums of sums travel.
// Source:  Sanders, Speck & Traeff, Parallel Computing 2009 (two-tree algorithms).
#include <algorithm>

#include "runtime/plan/builder.h"

namespace tern::double_tree {
namespace {

/// A node's neighbours in a binary tree of n nodes whose places 1 ... n are numbered in order; 0: none.
struct Node {
  int parent = 0;
  int children[2] = {0, 0};
  int depth = 0;
};

int lowest_bit(int place) {
  return place & -place;
}

int parent_of(int place, int n) {
  const int bit = lowest_bit(place);
  const int up = (place ^ bit) | (bit << 1);
  return up <= n ? up : place ^ bit;
}

Node node_at(int place, int n) {
  Node node;
  node.parent = parent_of(place, n);
  for (int at = node.parent; at != 0; at = parent_of(at, n)) ++node.depth;
  const int half = lowest_bit(place) / 2;
  if (half == 0) return node;
  node.children[0] = place - half;
  int right = half;
  while (right > 0 && place + right > n) right /= 2;
  if (right > 0) node.children[1] = place + right;
  return node;
}

/// Levels below the root.
int depth_of(int n) {
  int depth = 0;
  for (int bit = 1; 2 * bit <= n; bit *= 2) ++depth;
  return depth;
}

/// One of the two trees, over n ranks that begin behind `before` and go round.
struct Tree {
  int half;    ///< 0 or 1: the chunk that it moves
  int before;  ///< the rank before the first
  int n, p;

  int place_of(int rank) const {
    const int i = (rank - before - 1 + 2 * p) % p + 1;  // 1 ... n
    if (half == 0) return i;
    if (n % 2 == 0) return n + 1 - i;
    return i == 1 ? n : i - 1;
  }
  int rank_at(int place) const {
    int i = place;
    if (half == 1) i = n % 2 == 0 ? n + 1 - place : place % n + 1;
    return (before + i) % p;
  }
  int root() const { return rank_at(1 << depth_of(n)); }
  int depth() const { return depth_of(n); }
};

/// The reducing rounds: a node at depth d sends in round `depth - d`. Where it has children, the sum is in
/// `sum`.
void up(PlanBuilder& b, const Tree& tree, int rank, Ref sum) {
  const Node node = node_at(tree.place_of(rank), tree.n);
  const int round = tree.depth() - node.depth;
  bool has_sum = false;
  for (const int child : node.children) {
    if (child == 0) continue;
    has_sum ? b.recv_reduce(round - 1, tree.rank_at(child), sum)
            : b.recv(round - 1, tree.rank_at(child), sum);
    if (!has_sum) b.reduce(round - 1, input(tree.half), sum);
    has_sum = true;
  }
  if (node.parent != 0) b.send(round, tree.rank_at(node.parent), has_sum ? sum : input(tree.half));
}

/// The root's chunk down the tree, which it sends in round `first`.
void down(PlanBuilder& b, const Tree& tree, int rank, int first) {
  const Node node = node_at(tree.place_of(rank), tree.n);
  const Ref chunk = output(tree.half);
  if (node.parent != 0) b.recv(first + node.depth - 1, tree.rank_at(node.parent), chunk);
  for (const int child : node.children)
    if (child != 0) b.send(first + node.depth, tree.rank_at(child), chunk);
}

Plan all_reduce(const PlanRequest& request) {
  PlanBuilder b(request, "double_tree", 2);
  const int p = request.n_ranks;
  for (const int half : {0, 1}) {
    const Tree tree{half, p - 1, p, p};
    up(b, tree, request.rank, output(half));
    down(b, tree, request.rank, tree.depth());
  }
  return std::move(b).finish(2 * depth_of(p));
}

Plan broadcast(const PlanRequest& request) {
  PlanBuilder b(request, "double_tree", 2);
  const int n = request.n_ranks - 1;
  for (const int half : {0, 1}) {
    const Tree tree{half, request.root, n, request.n_ranks};
    if (request.rank == request.root) {
      b.send(0, tree.root(), input(half));
      b.copy(0, input(half), output(half));
      continue;
    }
    if (request.rank == tree.root()) b.recv(0, request.root, output(half));
    down(b, tree, request.rank, 1);
  }
  return std::move(b).finish(depth_of(n) + 1);
}

Plan reduce(const PlanRequest& request) {
  PlanBuilder b(request, "double_tree", 2);
  const int n = request.n_ranks - 1;
  const int last = depth_of(n);
  for (const int half : {0, 1}) {
    const Tree tree{half, request.root, n, request.n_ranks};
    if (request.rank == request.root) {
      b.recv(last, tree.root(), output(half));
      b.reduce(last, input(half), output(half));
      continue;
    }
    // An inner node of one tree is a leaf of the other, which sends its input: one place is enough.
    const Ref sum = make_ref(Buffer::kScratch, half, 1, 0);
    up(b, tree, request.rank, sum);
    if (request.rank == tree.root()) b.send(last, request.root, n == 1 ? input(half) : sum);
  }
  return std::move(b).finish(last + 1);
}

}  // namespace

bool supports(const PlanRequest& request) {
  const Collective c = request.collective;
  return c == Collective::kAllReduce || c == Collective::kBroadcast || c == Collective::kReduce;
}

Plan build(const PlanRequest& request) {
  if (request.n_ranks == 1) return plan_alone(request, "double_tree");
  switch (request.collective) {
    case Collective::kBroadcast:
      return broadcast(request);
    case Collective::kReduce:
      return reduce(request);
    default:
      return all_reduce(request);
  }
}

}  // namespace tern::double_tree
