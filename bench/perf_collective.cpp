#include "bench/perf_collective.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "runtime/base/nearest.h"

namespace tern::bench {
namespace {

size_t one(const PerfShape& s) {
  return s.count;
}
size_t all(const PerfShape& s) {
  return s.count * static_cast<size_t>(s.n_ranks);
}
size_t mine(const PerfShape& s) {
  return s.count * static_cast<size_t>(s.rank);
}
size_t zero(const PerfShape& /*s*/) {
  return 0;
}

double bus_once(int /*n*/) {
  return 1;
}
double bus_shards(int n) {
  return (n - 1.0) / n;
}
double bus_all_reduce(int n) {
  return 2 * bus_shards(n);
}

std::vector<Origin> reduced(const PerfShape& s) {
  return {{Origin::kReduced, 0, s.count}};
}
std::vector<Origin> reduced_shard(const PerfShape& s) {
  return {{Origin::kReduced, mine(s), s.count}};
}
std::vector<Origin> from_root(const PerfShape& s) {
  return {{s.root, 0, s.count}};
}
std::vector<Origin> from_each(const PerfShape& s) {
  std::vector<Origin> parts;
  parts.reserve(static_cast<size_t>(s.n_ranks));
  for (int r = 0; r < s.n_ranks; ++r) parts.push_back({r, 0, s.count});
  return parts;
}

size_t at_root(const PerfShape& s) {
  return s.rank == s.root ? s.count : 0;
}
size_t all_at_root(const PerfShape& s) {
  return s.rank == s.root ? all(s) : 0;
}
size_t mine_at_root(const PerfShape& s) {
  return s.rank == s.root ? mine(s) : 0;
}
std::vector<Origin> reduced_at_root(const PerfShape& s) {
  if (s.rank != s.root) return {};
  return reduced(s);
}
std::vector<Origin> from_each_at_root(const PerfShape& s) {
  if (s.rank != s.root) return {};
  return from_each(s);
}
std::vector<Origin> own_from_root(const PerfShape& s) {
  return {{s.root, mine(s), s.count}};
}
std::vector<Origin> block_from_each(const PerfShape& s) {
  std::vector<Origin> parts = from_each(s);
  for (Origin& part : parts) part.offset = mine(s);
  return parts;
}
std::vector<Origin> from_previous(const PerfShape& s) {
  return {{(s.rank + s.n_ranks - 1) % s.n_ranks, 0, s.count}};
}

/// all_to_all with uneven counts: what ranks i and j send each other, between 2 / (p + 1) and 2 p / (p + 1)
/// of `count`, so that every rank sends about p * count.
size_t uneven_block(const PerfShape& s, int i, int j) {
  const auto p = static_cast<size_t>(s.n_ranks);
  const size_t weight = static_cast<size_t>(i + j) % p + 1;
  return 2 * s.count * weight / (p + 1);
}
std::vector<size_t> uneven_blocks(const PerfShape& s) {
  std::vector<size_t> counts;
  for (int r = 0; r < s.n_ranks; ++r) counts.push_back(uneven_block(s, s.rank, r));
  return counts;
}
size_t uneven_all(const PerfShape& s) {
  const std::vector<size_t> counts = uneven_blocks(s);
  return std::accumulate(counts.begin(), counts.end(), size_t{0});
}
std::vector<Origin> uneven_block_from_each(const PerfShape& s) {
  std::vector<Origin> parts;
  for (int from = 0; from < s.n_ranks; ++from) {
    PerfShape theirs = s;
    theirs.rank = from;
    const std::vector<size_t> counts = uneven_blocks(theirs);
    const size_t before = std::accumulate(counts.begin(), counts.begin() + s.rank, size_t{0});
    parts.push_back({from, before, counts[static_cast<size_t>(s.rank)]});
  }
  return parts;
}

void append_all_reduce(const PerfCall& c, std::vector<Operation>& to) {
  to.push_back(ops::all_reduce(c.send, c.recv, c.op, c.options));
}
void append_reduce_scatter(const PerfCall& c, std::vector<Operation>& to) {
  to.push_back(ops::reduce_scatter(c.send, c.recv, c.op, c.options));
}
void append_all_gather(const PerfCall& c, std::vector<Operation>& to) {
  to.push_back(ops::all_gather(c.send, c.recv, c.options));
}
void append_broadcast(const PerfCall& c, std::vector<Operation>& to) {
  to.push_back(ops::broadcast(c.send, c.recv, c.root, c.options));
}
void append_reduce(const PerfCall& c, std::vector<Operation>& to) {
  to.push_back(ops::with(ops::reduce(c.send, c.recv, c.op, c.root), c.options));
}
void append_all_to_all(const PerfCall& c, std::vector<Operation>& to) {
  to.push_back(ops::all_to_all(c.send, c.recv, c.options));
}
void append_all_to_all_v(const PerfCall& c, std::vector<Operation>& to) {
  to.push_back(
      ops::with(ops::all_to_all_v(c.send, {.counts = c.counts}, c.recv, {.counts = c.counts}), c.options));
}
void append_gather(const PerfCall& c, std::vector<Operation>& to) {
  to.push_back(ops::gather(c.send, c.recv, c.root, c.options));
}
void append_scatter(const PerfCall& c, std::vector<Operation>& to) {
  to.push_back(ops::scatter(c.send, c.recv, c.root, c.options));
}
// What nccl-tests does with a message to the next rank and one from the rank before.
void append_sendrecv(const PerfCall& c, std::vector<Operation>& to) {
  to.push_back(ops::shift(c.send, c.recv, c.options));
}

constexpr auto kCollectives = std::to_array<PerfCollective>({
    {"all_reduce", Collective::kAllReduce, "AllReduce", false, true, false, bus_all_reduce, one, one, zero,
     zero, reduced, append_all_reduce, nullptr},
    {"reduce_scatter", Collective::kReduceScatter, "ReduceScatter", true, true, false, bus_shards, all, one,
     zero, mine, reduced_shard, append_reduce_scatter, nullptr},
    {"all_gather", Collective::kAllGather, "AllGather", true, false, false, bus_shards, one, all, mine, zero,
     from_each, append_all_gather, nullptr},
    {"broadcast", Collective::kBroadcast, "Broadcast", false, false, true, bus_once, one, one, zero, zero,
     from_root, append_broadcast, nullptr},
    {"reduce", Collective::kReduce, "Reduce", false, true, true, bus_once, one, at_root, zero, zero,
     reduced_at_root, append_reduce, nullptr},
    {"alltoall", Collective::kAllToAll, "AlltoAll", true, false, false, bus_shards, all, all, zero, zero,
     block_from_each, append_all_to_all, nullptr},
    {"alltoallv", Collective::kAllToAll, "AlltoAllv", true, false, false, bus_shards, uneven_all, uneven_all,
     zero, zero, uneven_block_from_each, append_all_to_all_v, uneven_blocks},
    {"gather", Collective::kGather, "Gather", true, false, true, bus_shards, one, all_at_root, mine_at_root,
     zero, from_each_at_root, append_gather, nullptr},
    {"scatter", Collective::kScatter, "Scatter", true, false, true, bus_shards, all_at_root, one, zero,
     mine_at_root, own_from_root, append_scatter, nullptr},
    {"sendrecv", Collective::kSendRecv, "SendRecv", false, false, false, bus_once, one, one, zero, zero,
     from_previous, append_sendrecv, nullptr},
});

}  // namespace

std::span<const PerfCollective> perf_collectives() {
  return kCollectives;
}

Result<const PerfCollective*> find_perf_collective(std::string_view name) {
  std::string known;
  for (const PerfCollective& row : kCollectives) {
    if (row.name == name) return &row;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  return error(Code::kNotFound, "no benchmark of a collective '{}'; there are {}", name, known);
}

size_t count_for(const PerfCollective& collective, size_t n_bytes, Dtype dtype, int n_ranks) {
  const size_t n = n_bytes / size_of(dtype);
  if (!collective.sharded) return n;
  const size_t per_16_bytes = std::max<size_t>(1, 16 / size_of(dtype));
  const size_t shard = n / static_cast<size_t>(n_ranks);
  return shard / per_16_bytes * per_16_bytes;
}

size_t bytes_of(const PerfCollective& collective, size_t count, Dtype dtype, int n_ranks) {
  const PerfShape shape = {.count = count, .n_ranks = n_ranks};  // the root's, which has the larger buffer
  return std::max(collective.n_send(shape), collective.n_recv(shape)) * size_of(dtype);
}

}  // namespace tern::bench
