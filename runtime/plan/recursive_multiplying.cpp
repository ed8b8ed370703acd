// Recursive multiplying: as recursive doubling, but groups of three or four ranks exchange in a round.
//
// all_reduce: every rank of a group sends its sum so far, of the whole vector, to the others and adds theirs
// in rank order, in one pass; then groups of groups. The groups multiply to p', the largest number of the
// form 2^a 3^b that is not above p; a rank beyond them gives its share to another first and gets the result
// last. reduce_scatter, all_gather: parts of the vector, four at a time, for any p: see splitting.h.
//
// Cost:    all_reduce: about log4 p rounds of 3 messages of n, and two rounds more where p > p';
//          reduce_scatter, all_gather: ceil(log4 p) rounds, about n (p-1)/p per rank.
// Wins:    small vectors where a round costs more than the bytes of three messages. Loses: large all_reduce.
// Codecs:  none, sums of sums travel.
// Source:  Ruefenacht, Bull & Booth, Parallel Computing 2017.
#include <algorithm>

#include "runtime/plan/builder.h"
#include "runtime/plan/splitting.h"

namespace tern::recursive_multiplying {
namespace {

constexpr int kRadix = 4;

/// The largest 2^a 3^b that is not above p.
int smooth_below(int p) {
  int best = 1;
  for (int threes = 1; threes <= p; threes *= 3)
    for (int n = threes; n <= p; n *= 2) best = std::max(best, n);
  return best;
}

/// Group sizes whose product is `n`, which is smooth: fours, then threes and at most one two.
std::vector<int> factors_of(int n) {
  std::vector<int> factors;
  for (const int f : {4, 3, 2})
    for (; n % f == 0; n /= f) factors.push_back(f);
  return factors;
}

/// Where the sum of each round is made: two places that take turns, as peers read the one before; the last in
/// the output, unless peers may still read the input that in place lies there.
class Sums {
 public:
  explicit Sums(int n_rounds) : n_rounds_(n_rounds) {}
  Ref at(int round, bool sends_input) const {
    const bool is_last = round == n_rounds_ - 1;
    return is_last && !sends_input ? output(0) : make_ref(Buffer::kScratch, 0, 1, round % 2);
  }

 private:
  int n_rounds_;
};

/// One round of a rank's group: ranks first, first + stride, ... first + (size - 1) stride.
struct Round {
  int number, rank;
  Ref own, sum;
};
void exchange(PlanBuilder& b, std::span<const int> group, const Round& at) {
  const auto& [round, rank, own, sum] = at;
  for (const int peer : group)
    if (peer != rank) b.send(round, peer, own);
  for (const int from : group) {
    const bool is_first = from == group.front();
    if (from == rank) {
      is_first ? b.copy(round, own, sum) : b.reduce(round, own, sum);
    } else {
      is_first ? b.recv(round, from, sum) : b.recv_reduce(round, from, sum);
    }
  }
}

Plan all_reduce(const PlanRequest& request) {
  const int p = request.n_ranks;
  const int rank = request.rank;
  const int n_smooth = smooth_below(p);
  const int n_extra = p - n_smooth;
  const std::vector<int> factors = factors_of(n_smooth);
  const int first = n_extra > 0 ? 1 : 0;  // round of the first exchange
  const int n_sums = first + static_cast<int>(factors.size());
  const int n_copies = factors.size() == 1 ? 1 : 0;  // a sum that could not be made in its place
  const int last = n_sums + n_copies;                // round in which extra ranks get the result
  const int n_rounds = n_extra > 0 ? last + 1 : last;
  PlanBuilder b(request, "recursive_multiplying", 1);
  if (rank >= n_smooth) {
    b.send(0, rank - n_smooth, input(0));
    b.recv(last, rank - n_smooth, output(0));
    return std::move(b).finish(n_rounds);
  }
  const Sums sums(n_sums);
  Ref own = input(0);
  if (rank < n_extra) {
    own = sums.at(0, true);
    b.copy(0, input(0), own);
    b.recv_reduce(0, rank + n_smooth, own);
  }
  int stride = 1;
  for (size_t i = 0; i < factors.size(); ++i) {
    std::vector<int> group;
    const int base = rank - rank / stride % factors[i] * stride;
    for (int k = 0; k < factors[i]; ++k) group.push_back(base + k * stride);
    const int round = first + static_cast<int>(i);
    const Ref sum = sums.at(round, i == 0);
    exchange(b, group, {round, rank, own, sum});
    own = sum;
    stride *= factors[i];
  }
  if (own != output(0)) b.copy(n_sums, own, output(0));
  if (rank < n_extra) b.send(last, rank + n_smooth, output(0));
  return std::move(b).finish(n_rounds);
}

}  // namespace

bool supports(const PlanRequest& request) {
  const Collective c = request.collective;
  return c == Collective::kAllReduce || c == Collective::kReduceScatter || c == Collective::kAllGather;
}

Plan build(const PlanRequest& request) {
  if (request.n_ranks == 1) return plan_alone(request, "recursive_multiplying");
  if (request.collective == Collective::kAllReduce) return all_reduce(request);
  return splitting::build(request, "recursive_multiplying", kRadix);
}

}  // namespace tern::recursive_multiplying
