// Ring: every rank talks to its two neighbours only.
//
// reduce_scatter: in round k, rank r sends the partial sum of chunk r-1-k to r+1 and adds its own share to
// the chunk that comes from r-1; after p-1 rounds chunk r, summed, is at rank r. all_gather: the finished
// chunks go round once. all_reduce: both.
//
// Cost:    p-1 messages of n/p per rank (all_reduce 2(p-1)), the fewest bytes.
// Wins:    large vectors on uniform links. Loses: small ones, as latency grows with p.
// Codecs:  none, it would quantise at every hop.
// Source:  Patarasuk & Yuan, JPDC 2009.
#include "runtime/plan/builder.h"

namespace tern::ring {
namespace {

struct Ring {
  int rank, p;
  int next() const { return (rank + 1) % p; }
  int prev() const { return (rank + p - 1) % p; }
  /// Chunk number `rank - back`, round the ring.
  int chunk(int back) const { return (rank - back + 2 * p) % p; }
};

/// Appends the reduce phase: p-1 rounds from round 0. `partial(k, chunk)` is where round k's partial sum
/// goes.
template <class Partial>
void reduce_phase(PlanBuilder& b, const Ring& ring, Partial partial) {
  for (int k = 0; k < ring.p - 1; ++k) {
    const int sent = ring.chunk(1 + k);
    const int received = ring.chunk(2 + k);
    b.send(k, ring.next(), k == 0 ? input(sent) : partial(k - 1, sent));
    const Ref dst = partial(k, received);
    b.recv(k, ring.prev(), dst);
    b.reduce(k, input(received), dst);
  }
}

/// Appends p-1 rounds from `first` in which the chunks in kOutput go round.
void gather_phase(PlanBuilder& b, const Ring& ring, int first, Ref own) {
  for (int k = 0; k < ring.p - 1; ++k) {
    b.send(first + k, ring.next(), k == 0 ? own : output(ring.chunk(k)));
    b.recv(first + k, ring.prev(), output(ring.chunk(1 + k)));
  }
}

Plan reduce_scatter(const PlanRequest& request) {
  const Ring ring{request.rank, request.n_ranks};
  PlanBuilder b(request, "ring", ring.p);
  // Two places take turns: one is being sent while the next partial sum is made in the other.
  reduce_phase(b, ring, [&](int k, int chunk) {
    return k == ring.p - 2 ? output(chunk) : make_ref(Buffer::kScratch, chunk, 1, k % 2);
  });
  return std::move(b).finish(ring.p - 1);
}

Plan all_gather(const PlanRequest& request) {
  const Ring ring{request.rank, request.n_ranks};
  PlanBuilder b(request, "ring", ring.p);
  gather_phase(b, ring, 0, input(ring.rank));
  b.copy(0, input(ring.rank), output(ring.rank));
  return std::move(b).finish(ring.p - 1);
}

Plan all_reduce(const PlanRequest& request) {
  const Ring ring{request.rank, request.n_ranks};
  PlanBuilder b(request, "ring", ring.p);
  reduce_phase(b, ring, [](int, int chunk) { return output(chunk); });
  gather_phase(b, ring, ring.p - 1, output(ring.rank));
  return std::move(b).finish(2 * (ring.p - 1));
}

}  // namespace

bool supports(const PlanRequest& request) {
  const Collective c = request.collective;
  return c == Collective::kAllReduce || c == Collective::kReduceScatter || c == Collective::kAllGather;
}

Plan build(const PlanRequest& request) {
  if (request.n_ranks == 1) return plan_alone(request, "ring");
  switch (request.collective) {
    case Collective::kReduceScatter:
      return reduce_scatter(request);
    case Collective::kAllGather:
      return all_gather(request);
    default:
      return all_reduce(request);
  }
}

}  // namespace tern::ring
