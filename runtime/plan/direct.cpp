// Direct: every rank sends every other rank exactly what that one needs.
//
// reduce_scatter: chunk c of every rank goes to rank c, which sums the p shares in rank order, in one pass.
// all_gather: the owner of a chunk sends it to all. all_reduce, reduce: reduce_scatter, then every owner's
// sum to all, or to the root (two-shot). broadcast, scatter: from the root to all. gather: from all to the
// root. all_to_all, sendrecv: each block to its receiver; in place through scratch, since what is sent is
// read until the round ends.
//
// Cost:    p-1 messages of n/p per rank in one round (all_reduce: two), the fewest bytes; broadcast: (p-1) n
//          at the root; sendrecv: one message of n. In place, all_to_all and sendrecv need scratch for what
//          arrives and copy it.
// Wins:    shared memory and wherever all pairs are equally close. Loses: where p messages at once congest
//          the network, and for small vectors when p alphas weigh.
// Codecs:  the shape they are made for: every share is summed at its owner, one quantisation per level.
// Source:  Thakur, Rabenseifner & Gropp, IJHPCA 2005 (pairwise exchange).
#include "runtime/plan/builder.h"

namespace tern::direct {
namespace {

/// The peer `k` places on: in step k all ranks talk to different peers.
int forward(const PlanRequest& r, int k) {
  return (r.rank + k) % r.n_ranks;
}
int backward(const PlanRequest& r, int k) {
  return (r.rank - k + r.n_ranks) % r.n_ranks;
}

/// Round 0: the sum of chunk `rank` goes to `own`.
void scatter_round(PlanBuilder& b, const PlanRequest& r, Ref own) {
  for (int k = 1; k < r.n_ranks; ++k) b.send(0, forward(r, k), input(forward(r, k)));
  for (int from = 0; from < r.n_ranks; ++from) {
    const bool is_first = from == 0;
    if (from == r.rank) {
      is_first ? b.copy(0, input(r.rank), own) : b.reduce(0, input(r.rank), own);
    } else {
      is_first ? b.recv(0, from, own) : b.recv_reduce(0, from, own);
    }
  }
}

void send_to_all(PlanBuilder& b, const PlanRequest& r, int round, Ref own) {
  for (int k = 1; k < r.n_ranks; ++k) b.send(round, forward(r, k), own);
}
void recv_from_all(PlanBuilder& b, const PlanRequest& r, int round) {
  for (int k = 1; k < r.n_ranks; ++k) b.recv(round, backward(r, k), output(backward(r, k)));
}

/// Every rank's chunk, which it has in `own`, to the root's output.
void to_root(PlanBuilder& b, const PlanRequest& r, int round, Ref own) {
  if (r.rank != r.root) {
    b.send(round, r.root, own);
  } else {
    recv_from_all(b, r, round);
  }
}

Plan reduce_scatter(const PlanRequest& request) {
  PlanBuilder b(request, "direct", request.n_ranks);
  scatter_round(b, request, output(request.rank));
  return std::move(b).finish(1);
}

Plan all_reduce(const PlanRequest& request) {
  PlanBuilder b(request, "direct", request.n_ranks);
  scatter_round(b, request, output(request.rank));
  send_to_all(b, request, 1, output(request.rank));
  recv_from_all(b, request, 1);
  return std::move(b).finish(2);
}

Plan reduce(const PlanRequest& request) {
  PlanBuilder b(request, "direct", request.n_ranks);
  const bool is_root = request.rank == request.root;
  const Ref own = is_root ? output(request.rank) : make_ref(Buffer::kScratch, request.rank, 1, 0);
  scatter_round(b, request, own);
  to_root(b, request, 1, own);
  return std::move(b).finish(2);
}

Plan all_gather(const PlanRequest& request) {
  PlanBuilder b(request, "direct", request.n_ranks);
  send_to_all(b, request, 0, input(request.rank));
  b.copy(0, input(request.rank), output(request.rank));  // while the others' are on their way
  recv_from_all(b, request, 0);
  return std::move(b).finish(1);
}

Plan gather(const PlanRequest& request) {
  PlanBuilder b(request, "direct", request.n_ranks);
  if (request.rank == request.root) b.copy(0, input(request.rank), output(request.rank));
  to_root(b, request, 0, input(request.rank));
  return std::move(b).finish(1);
}

/// broadcast and scatter: the root has chunk `chunk_of(rank)` for each rank.
template <class ChunkOf>
Plan from_root(const PlanRequest& r, int n_chunks, ChunkOf chunk_of) {
  PlanBuilder b(r, "direct", n_chunks);
  const int own = chunk_of(r.rank);
  if (r.rank == r.root) {
    for (int k = 1; k < r.n_ranks; ++k) b.send(0, forward(r, k), input(chunk_of(forward(r, k))));
    b.copy(0, input(own), output(own));
  } else {
    b.recv(0, r.root, output(own));
  }
  return std::move(b).finish(1);
}

/// Receives of round 0 into the output, or in place into scratch and from there in round 1.
class Arrivals {
 public:
  Arrivals(PlanBuilder& b, bool in_place) : b_(b), in_place_(in_place) {
    if (!in_place) b.out_of_place_only();
  }
  void recv(int from, int chunk) {
    const Ref place = in_place_ ? make_ref(Buffer::kScratch, chunk, 1, n_++) : output(chunk);
    b_.recv(0, from, place);
    if (in_place_) b_.copy(1, place, output(chunk));
  }

 private:
  PlanBuilder& b_;
  bool in_place_;
  int n_ = 0;
};

Plan all_to_all(const PlanRequest& request) {
  PlanBuilder b(request, "direct", request.n_ranks);
  Arrivals arrivals(b, request.in_place);
  for (int k = 1; k < request.n_ranks; ++k) b.send(0, forward(request, k), input(forward(request, k)));
  b.copy(0, input(request.rank), output(request.rank));  // while the others' are on their way
  for (int k = 1; k < request.n_ranks; ++k) arrivals.recv(backward(request, k), backward(request, k));
  return std::move(b).finish(2);
}

Plan sendrecv(const PlanRequest& request) {
  PlanBuilder b(request, "direct", 1);
  Arrivals arrivals(b, request.in_place);
  b.send(0, forward(request, 1), input(0));
  arrivals.recv(backward(request, 1), 0);
  return std::move(b).finish(2);
}

}  // namespace

bool supports(const PlanRequest& request) {
  return request.collective != Collective::kBarrier;
}

Plan build(const PlanRequest& request) {
  if (request.n_ranks == 1) return plan_alone(request, "direct");
  switch (request.collective) {
    case Collective::kReduceScatter:
      return reduce_scatter(request);
    case Collective::kAllGather:
      return all_gather(request);
    case Collective::kBroadcast:
      return from_root(request, 1, [](int) { return 0; });
    case Collective::kReduce:
      return reduce(request);
    case Collective::kGather:
      return gather(request);
    case Collective::kScatter:
      return from_root(request, request.n_ranks, [](int rank) { return rank; });
    case Collective::kAllToAll:
      return all_to_all(request);
    case Collective::kSendRecv:
      return sendrecv(request);
    default:
      return all_reduce(request);
  }
}

}  // namespace tern::direct
