// Bidirectional ring: every rank talks to both neighbours at once, so that each chunk goes half way round.
//
// reduce_scatter: the partial sums of chunk c come to rank c from both sides, from floor(p/2) ranks on its
// left and floor((p-1)/2) on its right; it adds both to its own share in one pass. all_gather: finished
// chunks go both ways. all_reduce: both.
//
// Cost:    p-1 messages of n/p per rank in floor(p/2) rounds (all_reduce twice that): the ring's bytes, half
//          to each side, in half its rounds.
// Wins:    large vectors on rings of full-duplex links, and over the ring wherever alpha weighs. Loses: small
//          vectors, as latency grows with p.
// Codecs:  none, it would quantise at every hop.
// Source:  Chan, Heimlich, Purkayastha & van de Geijn, CCPE 2007 (bidirectional rings).
#include "runtime/plan/builder.h"

namespace tern::bi_ring {
namespace {

struct Ring {
  int rank, p;
  int n_left() const { return p / 2; }  ///< ranks whose shares come from the left, hops of what goes right
  int n_right() const { return (p - 1) / 2; }
  int n_rounds() const { return n_left(); }
  int next() const { return (rank + 1) % p; }
  int prev() const { return (rank + p - 1) % p; }
  /// Chunk of the rank `offset` places on, within one round of the ring to either side.
  int chunk(int offset) const { return (rank + offset + p) % p; }
};

/// One direction of the reduce phase: what the rank receives from `from` it passes on to `to`. The chunk of
/// round k is `first - step k` places on when sent.
struct Stream {
  int from, to;
  int n_hops;
  int step;  ///< +1: to the right
};

/// Appends the reduce phase. partial(stream, k, chunk): where round k's partial sum goes.
template <class Partial>
void reduce_phase(PlanBuilder& b, const Ring& ring, Ref own, Partial partial) {
  const Stream streams[] = {{ring.prev(), ring.next(), ring.n_left(), 1},
                            {ring.next(), ring.prev(), ring.n_right(), -1}};
  const int last = ring.n_rounds() - 1;
  for (int s = 0; s < 2; ++s) {
    const Stream& stream = streams[s];
    const int late = ring.n_rounds() - stream.n_hops;  // both arrive in the last round
    for (int k = 0; k < stream.n_hops; ++k) {
      const int round = late + k;
      const int sent = ring.chunk(stream.step * (stream.n_hops - k));
      b.send(round, stream.to, k == 0 ? input(sent) : partial(s, k - 1, sent));
      if (round == last) continue;
      const int received = ring.chunk(stream.step * (stream.n_hops - k - 1));
      const Ref dst = partial(s, k, received);
      b.recv(round, stream.from, dst);
      b.reduce(round, input(received), dst);
    }
  }
  b.recv(last, ring.prev(), own);
  b.reduce(last, input(ring.rank), own);
  if (ring.n_right() > 0) b.recv_reduce(last, ring.next(), own);
}

void gather_phase(PlanBuilder& b, const Ring& ring, int first, Ref own) {
  for (int k = 0; k < ring.n_left(); ++k) {
    b.send(first + k, ring.next(), k == 0 ? own : output(ring.chunk(-k)));
    if (k < ring.n_right()) b.send(first + k, ring.prev(), k == 0 ? own : output(ring.chunk(k)));
    b.recv(first + k, ring.prev(), output(ring.chunk(-1 - k)));
    if (k < ring.n_right()) b.recv(first + k, ring.next(), output(ring.chunk(1 + k)));
  }
}

}  // namespace

bool supports(const PlanRequest& request) {
  const Collective c = request.collective;
  return c == Collective::kAllReduce || c == Collective::kReduceScatter || c == Collective::kAllGather;
}

Plan build(const PlanRequest& request) {
  if (request.n_ranks == 1) return plan_alone(request, "bi_ring");
  const Ring ring{request.rank, request.n_ranks};
  PlanBuilder b(request, "bi_ring", ring.p);
  switch (request.collective) {
    case Collective::kAllGather:
      gather_phase(b, ring, 0, input(ring.rank));
      b.copy(0, input(ring.rank), output(ring.rank));
      return std::move(b).finish(ring.n_rounds());
    case Collective::kReduceScatter:
      // Each direction has two places that take turns: one is sent while the next sum is made in the other.
      reduce_phase(b, ring, output(ring.rank), [](int stream, int k, int chunk) {
        return make_ref(Buffer::kScratch, chunk, 1, 2 * stream + k % 2);
      });
      return std::move(b).finish(ring.n_rounds());
    default:
      reduce_phase(b, ring, output(ring.rank), [](int, int, int chunk) { return output(chunk); });
      gather_phase(b, ring, ring.n_rounds(), output(ring.rank));
      return std::move(b).finish(2 * ring.n_rounds());
  }
}

}  // namespace tern::bi_ring
