// What the perf programs know of each collective: one row per program.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "runtime/communicator/communicator.h"

namespace tern::bench {

/// One timed call: what a row makes an operation of.
struct PerfCall {
  ConstView send;  ///< this rank's send part (in place: inside the receive buffer)
  View recv;
  Op op = Op::kSum;
  int root = 0;
  CallOptions options;
  std::span<const size_t> counts = {};  ///< uneven: elements to, and from, each rank
};

/// A run of elements of a result: copied from one rank's send buffer, or reduced over all.
struct Origin {
  static constexpr int kReduced = -1;
  int source = kReduced;  ///< rank, or kReduced
  size_t offset = 0;      ///< first element, in the send buffer(s)
  size_t n = 0;
};

/// Where a rank stands in a call of `count` elements (nccl-tests' count column).
struct PerfShape {
  size_t count = 0;
  int rank = 0;
  int n_ranks = 1;
  int root = 0;
};

/// A row. All counts are elements.
struct PerfCollective {
  std::string_view name;  ///< "all_reduce"; the program is <name>_perf
  Collective collective;
  std::string_view title;  ///< nccl-tests' experiment name: "AllReduce"
  bool sharded;            ///< the size is the whole vector and `count` one rank's shard of it
  bool reduces;            ///< takes -o; others run once, printed as "none"
  bool rooted;             ///< takes -r; others print -1
  double (*bus_factor)(int n_ranks);
  size_t (*n_send)(const PerfShape& shape);
  size_t (*n_recv)(const PerfShape& shape);
  /// In place: where this rank's send and receive parts begin in the one buffer.
  size_t (*send_offset)(const PerfShape& shape);
  size_t (*recv_offset)(const PerfShape& shape);
  /// What the receive part must hold afterwards, in order.
  std::vector<Origin> (*origins)(const PerfShape& shape);
  /// Appends the operations of one call.
  void (*append)(const PerfCall& call, std::vector<Operation>& to);
  /// Elements that this rank sends to, and gets from, each rank, where they differ; else null.
  std::vector<size_t> (*counts)(const PerfShape& shape);

  /// Codecs apply to it.
  bool encodes() const {
    return collective == Collective::kAllReduce || collective == Collective::kReduceScatter;
  }
};

std::span<const PerfCollective> perf_collectives();
Result<const PerfCollective*> find_perf_collective(std::string_view name);

/// The `count` that stands for a requested size. Sharded collectives round down so that each shard is a
/// multiple of 16 bytes, as nccl-tests does.
size_t count_for(const PerfCollective& collective, size_t n_bytes, Dtype dtype, int n_ranks);

/// The `size` column: bytes of the larger of the two buffers.
size_t bytes_of(const PerfCollective& collective, size_t count, Dtype dtype, int n_ranks);

}  // namespace tern::bench
