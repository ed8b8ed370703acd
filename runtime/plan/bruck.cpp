// Bruck: ceil(log2 p) rounds for any p, by sending what was received along with what one had.
//
// all_gather: before round k a rank has the chunks of the 2^k ranks from itself on; it sends them to the rank
// 2^k back and gets those of the rank 2^k on. They lie in the output where they belong, so that a run round
// its end is two messages instead of a rotation of the whole vector. all_to_all: the block for the rank i
// places on travels by the binary digits of i: in round k all blocks whose digit k is set go 2^k ranks on, as
// one message. Equal blocks only, since foreign ones pass through.
//
// Cost:    all_gather: ceil(log2 p) messages (up to two a round), (p-1)/p n bytes. all_to_all: ceil(log2 p)
//          messages of about n/2, each packed by copies.
// Wins:    small vectors and blocks on many ranks. Loses: all_to_all of large blocks, log2(p)/2 times the
// bytes. Codecs:  none: packed blocks would be encoded anew at every hop. Source:  Bruck, Ho, Kipnis, Upfal &
// Weathersbee, IEEE TPDS 1997.
#include <algorithm>

#include "runtime/plan/builder.h"

namespace tern::bruck {
namespace {

/// visit(run) for chunks [first, first + n), counted round the vector's end.
template <class Visit>
void each_run(int first, int n, int p, Visit visit) {
  const int chunk = first % p;
  const int until_end = std::min(n, p - chunk);
  visit(output(chunk, until_end));
  if (until_end < n) visit(output(0, n - until_end));
}

Plan all_gather(const PlanRequest& request) {
  const int p = request.n_ranks;
  const int rank = request.rank;
  PlanBuilder b(request, "bruck", p);
  if (p > 3) b.moves_runs();
  int round = 0;
  for (int has = 1; has < p; has *= 2, ++round) {
    const int n = std::min(has, p - has);
    const int to = (rank - has + p) % p;
    const int from = (rank + has) % p;
    if (round == 0)
      b.send(round, to, input(rank));
    else
      each_run(rank, n, p, [&](Ref run) { b.send(round, to, run); });
    each_run(rank + has, n, p, [&](Ref run) { b.recv(round, from, run); });
  }
  b.copy(0, input(rank), output(rank));
  return std::move(b).finish(round);
}

/// Copies of single blocks; neighbours whose sources and destinations lie side by side become one.
class Copies {
 public:
  Copies(PlanBuilder& b, int round) : b_(b), round_(round) {}
  ~Copies() { flush(); }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;
  void add(Ref src, Ref dst) {
    if (src_.n_chunks > 0 && follows(src_, src) && follows(dst_, dst)) {
      ++src_.n_chunks;
      ++dst_.n_chunks;
      return;
    }
    flush();
    src_ = src;
    dst_ = dst;
  }

 private:
  static bool follows(const Ref& run, const Ref& next) {
    return run.buffer == next.buffer && next.chunk == run.chunk + run.n_chunks &&
           (run.buffer != Buffer::kScratch || next.slot == run.slot + run.n_chunks);
  }
  void flush() {
    if (src_.n_chunks > 0) b_.copy(round_, src_, dst_);
    src_.n_chunks = 0;
  }
  PlanBuilder& b_;
  int round_;
  Ref src_{Buffer::kInput, 0, 0};
  Ref dst_;
};

/// The all_to_all of one rank. Block i is the one that has i places to go in all; round 0 only packs, and
/// round k + 1 exchanges the blocks with digit k and packs those with digit k + 1.
class Exchange {
 public:
  Exchange(PlanBuilder& b, const PlanRequest& request) : b_(b), request_(request), p_(request.n_ranks) {
    for (int k = 0; k < n_digits(); ++k) most_ = std::max(most_, static_cast<int>(with_digit(k).size()));
  }
  int n_digits() const { return ceil_log2(p_); }
  void pack_first();
  void round(int digit);
  void unpack_last();

 private:
  std::vector<int> with_digit(int k) const {
    std::vector<int> blocks;
    for (int i = 0; i < p_; ++i)
      if (has(i, k)) blocks.push_back(i);
    return blocks;
  }
  static bool has(int block, int digit) { return (block >> digit & 1) != 0; }
  /// Number of a block among those with the digit.
  static int idx(int block, int digit) {
    const int above = block >> (digit + 1);
    return above << digit | (block & ((1 << digit) - 1));
  }
  // Scratch: a home for each block, two areas to pack in that take turns, one where messages arrive.
  Ref home(int block) const { return make_ref(Buffer::kScratch, block, 1, block); }
  Ref packed(int block, int digit) const {
    return make_ref(Buffer::kScratch, block, 1, p_ + digit % 2 * most_ + idx(block, digit));
  }
  Ref arrived(int block, int digit) const {
    return make_ref(Buffer::kScratch, block, 1, p_ + 2 * most_ + idx(block, digit));
  }
  Ref own(int block) const { return input((request_.rank + block) % p_); }
  /// Block i comes from the rank i places back.
  Ref result(int block) const { return output((request_.rank - block + p_) % p_); }
  void place_arrived(int digit, Copies& copies) const;
  void pack(int digit, Copies& copies) const;

  PlanBuilder& b_;
  const PlanRequest& request_;
  int p_;
  int most_ = 0;  ///< blocks that one round moves
};

void Exchange::pack_first() {
  Copies copies(b_, 0);
  copies.add(own(0), result(0));
  for (const int block : with_digit(0)) copies.add(own(block), packed(block, 0));
}

void Exchange::round(int digit) {
  const int n = static_cast<int>(with_digit(digit).size());
  const int distance = 1 << digit;
  const auto whole = [n](Ref first) { return make_ref(first.buffer, 0, n, first.slot); };
  const int first = 1 << digit;  // the lowest block with the digit
  b_.send(digit + 1, (request_.rank + distance) % p_, whole(packed(first, digit)));
  b_.recv(digit + 1, (request_.rank - distance + p_) % p_, whole(arrived(first, digit)));
  Copies copies(b_, digit + 1);
  place_arrived(digit, copies);
  if (digit + 1 < n_digits()) pack(digit + 1, copies);
}

void Exchange::place_arrived(int digit, Copies& copies) const {
  for (const int block : with_digit(digit)) {
    const bool is_there = block >> (digit + 1) == 0;
    if (has(block, digit + 1))
      copies.add(arrived(block, digit), packed(block, digit + 1));
    else
      // In place, the output is the input that may still be needed.
      copies.add(arrived(block, digit), is_there && !request_.in_place ? result(block) : home(block));
  }
}

/// Those that have not just arrived.
void Exchange::pack(int digit, Copies& copies) const {
  for (const int block : with_digit(digit)) {
    if (has(block, digit - 1)) continue;
    const bool came_before = (block & ((1 << (digit - 1)) - 1)) != 0;
    copies.add(came_before ? home(block) : own(block), packed(block, digit));
  }
}

void Exchange::unpack_last() {
  if (!request_.in_place) return;
  Copies copies(b_, n_digits() + 1);
  for (int block = 1; block < p_; ++block) copies.add(home(block), result(block));
}

Plan all_to_all(const PlanRequest& request) {
  PlanBuilder b(request, "bruck", request.n_ranks);
  if (request.n_ranks > 3) b.moves_runs();
  if (!request.in_place) b.out_of_place_only();
  Exchange exchange(b, request);
  exchange.pack_first();
  for (int digit = 0; digit < exchange.n_digits(); ++digit) exchange.round(digit);
  exchange.unpack_last();
  return std::move(b).finish(exchange.n_digits() + 2);
}

}  // namespace

bool supports(const PlanRequest& request) {
  if (request.collective == Collective::kAllToAll) return !request.uneven;
  return request.collective == Collective::kAllGather;
}

Plan build(const PlanRequest& request) {
  if (request.n_ranks == 1) return plan_alone(request, "bruck");
  return request.collective == Collective::kAllToAll ? all_to_all(request) : all_gather(request);
}

}  // namespace tern::bruck
