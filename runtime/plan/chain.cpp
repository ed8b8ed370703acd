// Pipelined chain: the ranks in a line from the root; what comes is passed on, segment by segment.
//
// broadcast: from the root down the line. reduce: from the end of the line up, each rank adding its share.
//
// Cost:    n in and n out per rank; p-1 rounds, which the segments fill.
// Wins:    large vectors, as time tends to n beta, the least there is. Loses: small ones, p-1 alphas.
// Codecs:  none, sums of sums travel (broadcast would do, but a row is encoded whole).
// Source:  van de Geijn & Watts, SUMMA, 1997 (pipelined ring broadcast).
#include "runtime/plan/builder.h"

namespace tern::chain {
namespace {

/// A rank's place in the line.
struct Link {
  int distance;  ///< from the root
  int p;
  int away, home;  ///< neighbours
  bool is_last() const { return distance == p - 1; }
};

Plan broadcast(const PlanRequest& request, const Link& link) {
  PlanBuilder b(request, "chain", 1);
  const bool is_root = link.distance == 0;
  if (!link.is_last()) b.send(link.distance, link.away, is_root ? input(0) : output(0));
  if (!is_root) b.recv(link.distance - 1, link.home, output(0));
  if (is_root) b.copy(0, input(0), output(0));
  return std::move(b).finish(link.p - 1);
}

Plan reduce(const PlanRequest& request, const Link& link) {
  PlanBuilder b(request, "chain", 1);
  const bool is_root = link.distance == 0;
  const Ref sum = is_root ? output(0) : make_ref(Buffer::kScratch, 0, 1, 0);
  const int sends_in = link.p - 1 - link.distance;
  if (!link.is_last()) {
    b.recv(sends_in - 1, link.away, sum);
    b.reduce(sends_in - 1, input(0), sum);
  }
  if (!is_root) b.send(sends_in, link.home, link.is_last() ? input(0) : sum);
  return std::move(b).finish(link.p - 1);
}

}  // namespace

bool supports(const PlanRequest& request) {
  return request.collective == Collective::kBroadcast || request.collective == Collective::kReduce;
}

Plan build(const PlanRequest& request) {
  const int p = request.n_ranks;
  if (p == 1) return plan_alone(request, "chain");
  const Link link{(request.rank - request.root + p) % p, p, (request.rank + 1) % p,
                  (request.rank + p - 1) % p};
  return request.collective == Collective::kReduce ? reduce(request, link) : broadcast(request, link);
}

}  // namespace tern::chain
