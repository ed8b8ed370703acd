// Asynchronous collectives under way, and what they cost.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/communicator/communicator.h"

namespace tern::trainer {

/// What a set of collectives moved and took, on this rank.
struct Traffic {
  uint64_t bytes_on_wire = 0;  ///< sent
  uint64_t bytes_dense = 0;    ///< that the same collectives send at best without a codec
  double comm_seconds = 0;     ///< sum of the collectives' own times
  double exposed_seconds = 0;  ///< that the calling thread waited for them

  Traffic& operator+=(const Traffic& other);
};

/// Bytes that a rank must send at least, uncompressed, for n fp32 elements over p ranks (Patarasuk & Yuan,
/// 2009).
uint64_t dense_bytes_all_reduce(int64_t n_elements, int n_ranks);
/// n_elements: of the whole buffer, for reduce-scatter and all-gather.
uint64_t dense_bytes_scatter_or_gather(int64_t n_elements, int n_ranks);

/// Works in call order. Move-only. An error of one ends the set: the communicator is unusable then.
class PendingCalls {
 public:
  /// Takes the work over, or keeps its error for wait_all().
  void add(Result<Work> work, uint64_t bytes_dense);
  bool failed() const { return !first_error_.ok(); }
  /// Waits for all, empties the set and adds to `traffic`. Errors: the first of the collectives'.
  Status wait_all(Traffic& traffic);
  /// Of the calls that wait_all() last waited for, in call order; none after an error.
  std::span<const CallReport> reports() const { return reports_; }

 private:
  std::vector<Work> works_;
  std::vector<CallReport> reports_;
  uint64_t bytes_dense_ = 0;
  Status first_error_;
};

}  // namespace tern::trainer
