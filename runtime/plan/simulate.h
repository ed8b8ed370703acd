// The price of a plan: an event-driven run over modelled links.
#pragma once

#include <functional>
#include <span>

#include "runtime/plan/plan.h"

namespace tern {

/// Cost of one message over a link: alpha [s] + n_bytes * beta [s/byte] (Hockney, Parallel Computing 1994).
struct Link {
  double alpha = 0;  ///< s per message
  double beta = 0;   ///< s per byte
  /// Shared memory: the receiver's core reads the sender's memory, at beta per byte copied. The message costs
  /// the receiver CPU time instead of port time, and the sender's port stays free.
  bool receiver_reads = false;
};

/// Speeds the simulator prices with; value type. Links are looked up per ordered pair of ranks.
struct CostModel {
  std::function<Link(int from, int to)> link;
  std::function<int(int rank)> node_of;  ///< ranks of one node share `cores_per_node`
  int cores_per_node = 1;                ///< ranks beyond it take turns (ranks may outnumber cores)
  double copy_beta = 0;                  ///< s per byte copied (one read, one written)
  /// s per byte of a reduction of two operands (two read, one written); each further operand of a fused
  /// reduction costs the difference to copy_beta.
  double reduce_beta = 0;
  double encode_beta = 0;  ///< s per decoded byte
  double decode_beta = 0;
  double wire_ratio = 1;  ///< encoded bytes per dense byte
  /// Work on pieces larger than this costs `far` times as much per byte: what one round leaves in the cache
  /// is gone when the next one reads it. That is what segments are for inside a host. 0: no such size.
  double cache_bytes = 0;
  double far = 1;
  /// s per round and segment spent in the executor (a context switch included when ranks outnumber cores)
  double round_overhead = 0;
};

/// How a plan is run: what the executor chooses besides the plan itself.
struct RunShape {
  size_t n_bytes = 0;        ///< the whole vector
  size_t segment_bytes = 0;  ///< a chunk is cut in segments of at most this; 0: not cut
  size_t element_bytes = 1;
  bool in_place = false;  ///< copies between the same chunk of kInput and kOutput cost nothing
};

/// Segments of a chunk when `plan` is run in `shape`: the same for all chunks; at least 1.
size_t n_segments(const Plan& plan, const RunShape& shape);

struct Prediction {
  double seconds = 0;
  size_t bytes_on_wire_per_rank = 0;  ///< the busiest rank's sent bytes
  int n_messages = 0;                 ///< the busiest rank's sends
};

/// Simulates one call on all ranks, started at the same time.
///
/// A rank runs slot after slot; slot t holds round r of segment s for r + s = t: it posts the slot's sends
/// and receives, takes the receives and does its own work in the listed order, and ends when its sends were
/// received. A rank's sends go out one after another; a receiver takes what it has posted in the order of
/// arrival. Ranks of a node that want a core wait for one in turn.
///
/// plans:  one per rank, in rank order, verified.
/// Cost:   O(steps x segments x log ranks), where segments beyond twice the rounds + 48 cost nothing.
Prediction simulate(std::span<const Plan> plans, const RunShape& shape, const CostModel& model);

/// Seconds below which simulate() cannot predict: what the busiest port or core has to do, without any
/// waiting. Cost: O(steps).
double least_seconds(std::span<const Plan> plans, const RunShape& shape, const CostModel& model);

}  // namespace tern
