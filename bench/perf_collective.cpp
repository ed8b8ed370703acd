#include "bench/perf_collective.h"

#include <algorithm>
#include <array>
#include <cstring>

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

Status run_all_reduce(const PerfCall& c) {
  return c.comm->all_reduce(c.send, c.recv, c.op, c.options);
}
Result<Work> start_all_reduce(const PerfCall& c) {
  return c.comm->all_reduce_async(c.send, c.recv, c.op, c.options);
}
Status run_reduce_scatter(const PerfCall& c) {
  return c.comm->reduce_scatter(c.send, c.recv, c.op, c.options);
}
Result<Work> start_reduce_scatter(const PerfCall& c) {
  return c.comm->reduce_scatter_async(c.send, c.recv, c.op, c.options);
}
Status run_all_gather(const PerfCall& c) {
  return c.comm->all_gather(c.send, c.recv, c.options);
}
Result<Work> start_all_gather(const PerfCall& c) {
  return c.comm->all_gather_async(c.send, c.recv, c.options);
}

// Out of place, the root's own copy is part of the call, as in NCCL; Tern's call has one buffer.
void copy_at_root(const PerfCall& c) {
  if (c.comm->rank() != c.root || c.send.data == c.recv.data || c.send.n == 0) return;
  std::memcpy(c.recv.data, c.send.data, c.send.n_bytes());
}
Status run_broadcast(const PerfCall& c) {
  copy_at_root(c);
  return c.comm->broadcast(c.recv, c.root, c.options);
}
Result<Work> start_broadcast(const PerfCall& c) {
  copy_at_root(c);
  return c.comm->broadcast_async(c.recv, c.root, c.options);
}

constexpr auto kCollectives = std::to_array<PerfCollective>({
    {"all_reduce", "AllReduce", false, true, false, bus_all_reduce, one, one, zero, zero, reduced,
     run_all_reduce, start_all_reduce},
    {"reduce_scatter", "ReduceScatter", true, true, false, bus_shards, all, one, zero, mine, reduced_shard,
     run_reduce_scatter, start_reduce_scatter},
    {"all_gather", "AllGather", true, false, false, bus_shards, one, all, mine, zero, from_each,
     run_all_gather, start_all_gather},
    {"broadcast", "Broadcast", false, false, true, bus_once, one, one, zero, zero, from_root, run_broadcast,
     start_broadcast},
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
  const PerfShape shape = {.count = count, .n_ranks = n_ranks};
  return std::max(collective.n_send(shape), collective.n_recv(shape)) * size_of(dtype);
}

}  // namespace tern::bench
