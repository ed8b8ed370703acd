// Pairwise exchange: in each round all ranks meet in pairs and exchange what they owe each other.
//
// The pairs are those of a round-robin tournament (circle method), so that every two ranks meet once; with an
// odd number, one rank rests in each round. all_to_all: each other's block; in place, what arrives waits in
// scratch while the block that it replaces is sent. reduce_scatter: each other's chunk, which the receiver
// adds to its own.
//
// Cost:    p-1 messages of n/p per rank, one a round (p rounds for odd p); the fewest bytes.
// Wins:    large blocks where many messages at once would congest the network, little scratch. Loses: to
//          direct where they do not, and to Bruck for small blocks.
// Codecs:  every share is added at its owner, one quantisation per level.
// Source:  Thakur, Rabenseifner & Gropp, IJHPCA 2005; Kirkman 1847 (the tournament).
#include "runtime/plan/builder.h"

namespace tern::pairwise {
namespace {

int n_meetings(int p) {
  return p % 2 == 0 ? p - 1 : p;
}

/// Whom a rank meets in `round` of the tournament; -1: nobody. An even world's last rank sits in the middle
/// of the circle and meets who would meet itself.
int partner(int rank, int p, int round) {
  const int n = n_meetings(p);
  const bool has_middle = p % 2 == 0;
  if (has_middle && rank == p - 1) return round * ((n + 1) / 2) % n;
  const int other = (round - rank + n) % n;
  if (other != rank) return other;
  return has_middle ? p - 1 : -1;
}

Plan all_to_all(const PlanRequest& request) {
  PlanBuilder b(request, "pairwise", request.n_ranks);
  if (!request.in_place) b.out_of_place_only();
  const int n = n_meetings(request.n_ranks);
  b.copy(0, input(request.rank), output(request.rank));
  for (int k = 0; k < n; ++k) {
    const int peer = partner(request.rank, request.n_ranks, k);
    if (peer < 0) continue;
    b.send(k, peer, input(peer));
    const Ref place = request.in_place ? make_ref(Buffer::kScratch, peer, 1, k % 2) : output(peer);
    b.recv(k, peer, place);
    if (request.in_place) b.copy(k + 1, place, output(peer));
  }
  return std::move(b).finish(n + 1);
}

Plan reduce_scatter(const PlanRequest& request) {
  PlanBuilder b(request, "pairwise", request.n_ranks);
  const Ref own = output(request.rank);
  const int n = n_meetings(request.n_ranks);
  bool has_sum = false;
  for (int k = 0; k < n; ++k) {
    const int peer = partner(request.rank, request.n_ranks, k);
    if (peer < 0) continue;
    b.send(k, peer, input(peer));
    if (!has_sum) b.copy(k, input(request.rank), own);
    b.recv_reduce(k, peer, own);
    has_sum = true;
  }
  return std::move(b).finish(n);
}

}  // namespace

bool supports(const PlanRequest& request) {
  return request.collective == Collective::kAllToAll || request.collective == Collective::kReduceScatter;
}

Plan build(const PlanRequest& request) {
  if (request.n_ranks == 1) return plan_alone(request, "pairwise");
  return request.collective == Collective::kAllToAll ? all_to_all(request) : reduce_scatter(request);
}

}  // namespace tern::pairwise
