// The average of a matrix over all ranks as a product of two thin matrices: PowerSGD (Vogels, Karimireddy &
// Jaggi, 2019). It is linear in the ranks' matrices, so that it needs no codec inside a collective: the thin
// matrices ride dense all_reduces.
#pragma once

#include <span>
#include <vector>

#include "kernels/low_rank.h"
#include "runtime/communicator/communicator.h"

namespace tern {

/// One 2-D parameter's gradient, step after step; move-only by use: its state is the warm start.
///
/// A call sends rank * (rows + cols) fp32 elements instead of rows * cols, twice as an all_reduce does.
/// Threads: one at a time.
class LowRank {
 public:
  static constexpr size_t kMostRank = 32;

  /// seed: of the first directions; equal on all ranks.
  /// Errors: kInvalidArgument (no elements, or a rank outside 1..min(rows, cols, 32)).
  static Result<LowRank> create(const LowRankShape& shape, uint64_t seed);

  /// matrix: rows * cols elements, this rank's gradient; becomes the approximate average of gradient +
  /// residual over the ranks, the same bits on all of them. residual: as many, read and rewritten: what the
  /// approximation did not send of this rank's matrix, so that averages of (sent + residual) are exact up to
  /// rounding. A rank's element that is not finite makes the whole matrix NaN on all ranks, and leaves
  /// residual and directions as they were.
  /// Cost: 8 rows cols rank flops, two all_reduces. Errors: kInvalidArgument (sizes); those of all_reduce().
  Status average(Communicator& comm, std::span<float> matrix, std::span<float> residual,
                 const CallOptions& options = {});

  /// The last call's step is not applied: the directions go back to what they were (the residual is the
  /// caller's).
  void roll_back() { q_ = q_before_; }

  /// What a checkpoint must hold besides the residual: rank * cols floats, equal on all ranks.
  std::span<float> directions() { return q_; }

 private:
  LowRank(const LowRankShape& shape, uint64_t seed);
  void renew_direction(size_t k);
  void orthonormalise();

  LowRankShape shape_;
  uint64_t seed_;
  std::vector<float> p_, q_, q_before_;
};

}  // namespace tern
