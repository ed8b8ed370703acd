#include "runtime/communicator/operation.h"

#include <algorithm>
#include <limits>

namespace tern {
namespace {

using Text = std::string_view;

Status check_memory(const ConstView& view, Text which) {
  if (view.data == nullptr && view.n > 0) {
    return error(Code::kInvalidArgument, "the {} buffer is null but holds {} elements", which, view.n);
  }
  if (view.n > std::numeric_limits<size_t>::max() / size_of(view.dtype)) {
    return error(Code::kInvalidArgument,
                 "the {} buffer of {} elements of {} bytes overflows the address space", which, view.n,
                 size_of(view.dtype));
  }
  return {};
}

// True when the two runs share bytes.
bool overlap(const ConstView& a, const ConstView& b) {
  const auto a0 = reinterpret_cast<uintptr_t>(a.data);
  const auto b0 = reinterpret_cast<uintptr_t>(b.data);
  return a0 < b0 + b.n_bytes() && b0 < a0 + a.n_bytes();
}

// in and out may be disjoint, or `small` exactly the part of `large` that begins at element `begin` (in
// place).
Status check_overlap(const ConstView& large, const ConstView& small, size_t begin) {
  if (!overlap(large, small)) return {};
  const size_t in_place = begin * size_of(large.dtype);
  if (static_cast<const std::byte*>(large.data) + in_place == small.data) return {};
  return error(Code::kInvalidArgument,
               "input and output overlap by {} bytes from each other's start; allowed: disjoint, or in place "
               "at byte {}",
               static_cast<const std::byte*>(small.data) - static_cast<const std::byte*>(large.data),
               in_place);
}

Status check_equal_counts(const Operation& o) {
  if (o.in.n == o.out.n) return {};
  return error(Code::kInvalidArgument, "{}: input holds {} elements but output holds {}", name(o.collective),
               o.in.n, o.out.n);
}

Status check_parts(const Operation& o, const Parts& parts, int n_ranks) {
  const auto wrong_length = [&](Text what, size_t n) {
    return error(Code::kInvalidArgument, "{}: there are {} {}; there must be one for each of the {} ranks",
                 name(o.collective), n, what, n_ranks);
  };
  const auto ranks = static_cast<size_t>(n_ranks);
  if (parts.counts.size() != ranks) return wrong_length("counts", parts.counts.size());
  if (!parts.offsets.empty() && parts.offsets.size() != ranks)
    return wrong_length("offsets", parts.offsets.size());
  size_t total = 0;
  for (const size_t count : parts.counts) {
    if (count > std::numeric_limits<size_t>::max() / 16 - total)
      return error(Code::kInvalidArgument, "{}: the counts of all ranks overflow the address space",
                   name(o.collective));
    total += count;
  }
  return {};
}

size_t total(std::span<const size_t> counts) {
  size_t sum = 0;
  for (const size_t count : counts) sum += count;
  return sum;
}

// The two buffers of an operation in which one holds a share of the other.
struct Shares {
  ConstView whole, share;
  Text whole_name, share_name;
  bool has_whole = true, has_share = true;  ///< on this rank
};

Shares shares_of(const Operation& o, int rank) {
  const bool is_root = rank == o.root;
  switch (o.collective) {
    case Collective::kReduceScatter:
      return {o.in, o.out, "input", "output"};
    case Collective::kScatter:
      return {o.in, o.out, "input", "output", is_root};
    case Collective::kGather:
      return {o.out, o.in, "output", "input", is_root};
    default:
      return {o.out, o.in, "output", "input"};
  }
}

Result<size_t> check_shares(const Operation& o, int rank, int n_ranks) {
  const Shares s = shares_of(o, rank);
  const auto ranks = static_cast<size_t>(n_ranks);
  const auto self = static_cast<size_t>(rank);
  size_t whole = 0;
  size_t begin = 0;
  if (o.is_uneven()) {
    TERN_TRY(check_parts(o, o.in_parts, n_ranks));
    if (!o.in_parts.offsets.empty())
      return error(Code::kInvalidArgument, "{}: parts lie one after the other; offsets are for all_to_all",
                   name(o.collective));
    whole = total(o.in_parts.counts);
    begin = total(o.in_parts.counts.first(self));
    if (s.share.n != o.in_parts.counts[self])
      return error(Code::kInvalidArgument, "{}: {} holds {} elements but the count of rank {} is {}",
                   name(o.collective), s.share_name, s.share.n, rank, o.in_parts.counts[self]);
  } else {
    if (s.share.n > std::numeric_limits<size_t>::max() / ranks / size_of(s.share.dtype)) {
      return error(Code::kInvalidArgument, "{} elements on each of {} ranks overflow the address space",
                   s.share.n, n_ranks);
    }
    whole = s.share.n * ranks;
    begin = s.share.n * self;
  }
  if (!s.has_whole) return whole;
  if (s.whole.n != whole) {
    return error(Code::kInvalidArgument, "{}: {} holds {} elements; it must hold {} x {} = {}",
                 name(o.collective), s.whole_name, s.whole.n, n_ranks, s.share.n, whole);
  }
  TERN_TRY(check_overlap(s.whole, s.share, begin));
  return whole;
}

Status check_inside(const Operation& o, const Parts& parts, const ConstView& view, Text which) {
  size_t next = 0;
  for (size_t r = 0; r < parts.counts.size(); ++r) {
    const size_t begin = parts.offsets.empty() ? next : parts.offsets[r];
    if (parts.counts[r] > 0 && (begin > view.n || parts.counts[r] > view.n - begin))
      return error(Code::kInvalidArgument, "{}: the {} part of rank {}, elements {} to {}, is outside of {}",
                   name(o.collective), which, r, begin, begin + parts.counts[r], view.n);
    next = begin + parts.counts[r];
  }
  return {};
}

Result<size_t> check_all_to_all(const Operation& o, int n_ranks) {
  if (o.is_uneven()) {
    TERN_TRY(check_parts(o, o.in_parts, n_ranks));
    TERN_TRY(check_parts(o, o.out_parts, n_ranks));
    TERN_TRY(check_inside(o, o.in_parts, o.in, "input"));
    TERN_TRY(check_inside(o, o.out_parts, o.out, "output"));
    const auto same = [](std::span<const size_t> a, std::span<const size_t> b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end());
    };
    const bool in_place = o.in.data == o.out.data && same(o.in_parts.counts, o.out_parts.counts) &&
                          same(o.in_parts.offsets, o.out_parts.offsets);
    if (!in_place && overlap(o.in, o.out))
      return error(Code::kInvalidArgument,
                   "all_to_all with uneven counts: input and output overlap; allowed: disjoint, or the same "
                   "with the same parts");
    return total(o.in_parts.counts);
  }
  TERN_TRY(check_equal_counts(o));
  if (o.in.n % static_cast<size_t>(n_ranks) != 0)
    return error(Code::kInvalidArgument, "all_to_all: {} elements cannot be cut in {} equal blocks", o.in.n,
                 n_ranks);
  TERN_TRY(check_overlap(o.in, o.out, 0));
  return o.in.n;
}

// What the two buffers must be on this rank, so that buffers it does not have are not looked at.
Status check_buffers(const Operation& o, int rank) {
  const bool is_root = rank == o.root;
  const bool has_in =
      o.kind != Operation::Kind::kRecv &&
      (is_root || (o.collective != Collective::kScatter && o.collective != Collective::kBroadcast));
  const bool has_out =
      o.kind != Operation::Kind::kSend &&
      (is_root || (o.collective != Collective::kGather && o.collective != Collective::kReduce));
  if (has_in) TERN_TRY(check_memory(o.in, "input"));
  if (has_out) TERN_TRY(check_memory(o.out, "output"));
  if (has_in && has_out && o.in.dtype != o.out.dtype) {
    return error(Code::kInvalidArgument, "input is {} but output is {}; they must be equal", name(o.in.dtype),
                 name(o.out.dtype));
  }
  return {};
}

Status check_root(const Operation& o, int n_ranks) {
  const bool is_message = o.kind != Operation::Kind::kCollective;
  if (!is_message && !has_root(o.collective)) return {};
  if (o.root >= 0 && o.root < n_ranks) return {};
  const Text what = o.kind == Operation::Kind::kSend ? "send" : is_message ? "recv" : name(o.collective);
  return error(Code::kInvalidArgument, "{}: {} {} is not a rank; allowed: 0..{}", what,
               is_message ? "peer" : "root", o.root, n_ranks - 1);
}

Operation make(Collective collective, ConstView in, View out, const CallOptions& options) {
  return {.collective = collective, .in = in, .out = out, .options = options};
}

Operation with_root(Operation o, int root) {
  o.root = root;
  return o;
}

Operation with_op(Operation o, Op op) {
  o.op = op;
  return o;
}

}  // namespace

Result<size_t> check(const Operation& o, int rank, int n_ranks) {
  TERN_TRY(check_root(o, n_ranks));
  TERN_TRY(check_buffers(o, rank));
  if (o.kind == Operation::Kind::kSend) return o.in.n;
  if (o.kind == Operation::Kind::kRecv) return o.out.n;
  switch (o.collective) {
    case Collective::kBarrier:
      return size_t{0};
    case Collective::kAllToAll:
      return check_all_to_all(o, n_ranks);
    case Collective::kAllReduce:
    case Collective::kSendRecv:
      TERN_TRY(check_equal_counts(o));
      TERN_TRY(check_overlap(o.in, o.out, 0));
      return o.in.n;
    case Collective::kReduce:
    case Collective::kBroadcast:
      if (rank == o.root) {
        TERN_TRY(check_equal_counts(o));
        TERN_TRY(check_overlap(o.in, o.out, 0));
      }
      return o.collective == Collective::kReduce ? o.in.n : o.out.n;
    default:
      return check_shares(o, rank, n_ranks);
  }
}

namespace ops {

Operation all_reduce(ConstView in, View out, Op op, const CallOptions& options) {
  return with_op(make(Collective::kAllReduce, in, out, options), op);
}
Operation reduce_scatter(ConstView in, View out, Op op, const CallOptions& options) {
  return with_op(make(Collective::kReduceScatter, in, out, options), op);
}
Operation all_gather(ConstView in, View out, const CallOptions& options) {
  return make(Collective::kAllGather, in, out, options);
}
Operation broadcast(ConstView in, View out, int root, const CallOptions& options) {
  return with_root(make(Collective::kBroadcast, in, out, options), root);
}
Operation reduce(ConstView in, View out, Op op, int root) {
  return with_root(with_op(make(Collective::kReduce, in, out, {}), op), root);
}
Operation all_to_all(ConstView in, View out, const CallOptions& options) {
  return make(Collective::kAllToAll, in, out, options);
}
Operation gather(ConstView in, View out, int root, const CallOptions& options) {
  return with_root(make(Collective::kGather, in, out, options), root);
}
Operation scatter(ConstView in, View out, int root, const CallOptions& options) {
  return with_root(make(Collective::kScatter, in, out, options), root);
}
Operation shift(ConstView in, View out, const CallOptions& options) {
  return make(Collective::kSendRecv, in, out, options);
}
Operation barrier(const CallOptions& options) {
  return make(Collective::kBarrier, {}, {}, options);
}
Operation send(ConstView data, int to, const CallOptions& options) {
  Operation o = with_root(make(Collective::kSendRecv, data, {}, options), to);
  o.kind = Operation::Kind::kSend;
  return o;
}
Operation recv(View data, int from, const CallOptions& options) {
  Operation o = with_root(make(Collective::kSendRecv, {}, data, options), from);
  o.kind = Operation::Kind::kRecv;
  return o;
}
Operation uneven(Operation operation, std::span<const size_t> counts) {
  operation.in_parts.counts = counts;
  return operation;
}
Operation all_to_all_v(ConstView in, const Parts& to, View out, const Parts& from) {
  Operation o = make(Collective::kAllToAll, in, out, {});
  o.in_parts = to;
  o.out_parts = from;
  return o;
}

Operation with(Operation operation, const CallOptions& options) {
  operation.options = options;
  return operation;
}

}  // namespace ops
}  // namespace tern
