// One collective, or one end of a message, as a value: what groups and asynchronous calls are made of.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status.h"
#include "runtime/codec/codec_choice.h"
#include "runtime/plan/plan.h"

namespace tern {

/// Choices for one call; the default leaves all of them to the planner and the settings.
struct CallOptions {
  /// Nothing: TERN_CODEC where it applies; kNone: dense whatever TERN_CODEC says; auto: as the planner finds
  /// that it pays, for sums and averages of 64 KiB and more.
  std::optional<CodecChoice> codec;
  float* residual =
      nullptr;  ///< error-feedback memory, as many floats as the input holds; mandatory for biased codecs
  std::string_view algorithm;  ///< "" : planner, or TERN_ALGORITHM
  uint32_t step = 0;           ///< training step and bucket, part of the wire header of encoded messages
  uint32_t bucket = 0;
  bool measures_error = false;  ///< encoded calls: CallReport::error, at the cost of a decoding
  double hidden_seconds = 0;    ///< codec auto: of the call that other work hides; the same on all ranks
  double factor = 1;   ///< Op::kPremulSum: what this rank's input is multiplied with; may differ per rank
  Seconds timeout{0};  ///< 0: TERN_TIMEOUT
};

/// Elements per rank of the uneven forms, and where each rank's part begins. Does not own.
struct Parts {
  std::span<const size_t> counts;        ///< one per rank
  std::span<const size_t> offsets = {};  ///< first element of each part; empty: one after the other
};

/// Made by the functions below, run by Communicator::run(), run_group() and start(). The memory it names is
/// the caller's until the call is done.
struct Operation {
  enum class Kind : uint8_t { kCollective, kSend, kRecv };
  Kind kind = Kind::kCollective;
  Collective collective = Collective::kBarrier;
  ConstView in;
  View out;
  Op op = Op::kSum;
  int root = 0;     ///< the peer of kSend and kRecv
  Parts in_parts;   ///< all_to_all: what goes to each rank; the other uneven forms: each rank's count
  Parts out_parts;  ///< all_to_all: what comes from each rank
  CallOptions options;

  bool is_uneven() const { return !in_parts.counts.empty(); }
};

/// Elements of the whole vector, after all that one rank can see of a wrong call was looked for: null or
/// overlapping buffers, sizes that do not fit each other or overflow, a root that is none.
/// Errors: kInvalidArgument saying what is wrong and what is allowed.
Result<size_t> check(const Operation& operation, int rank, int n_ranks);

/// Shapes and meaning of each: see the functions of the same names in communicator.h.
namespace ops {
Operation all_reduce(ConstView in, View out, Op op, const CallOptions& options = {});
Operation reduce_scatter(ConstView in, View out, Op op, const CallOptions& options = {});
Operation all_gather(ConstView in, View out, const CallOptions& options = {});
Operation broadcast(ConstView in, View out, int root, const CallOptions& options = {});
Operation reduce(ConstView in, View out, Op op, int root);
Operation all_to_all(ConstView in, View out, const CallOptions& options = {});
Operation gather(ConstView in, View out, int root, const CallOptions& options = {});
Operation scatter(ConstView in, View out, int root, const CallOptions& options = {});
Operation shift(ConstView in, View out, const CallOptions& options = {});
Operation barrier(const CallOptions& options = {});
Operation send(ConstView data, int to, const CallOptions& options = {});
Operation recv(View data, int from, const CallOptions& options = {});
/// The same with uneven counts.
Operation uneven(Operation operation, std::span<const size_t> counts);
Operation all_to_all_v(ConstView in, const Parts& to, View out, const Parts& from);
/// The same with other options.
Operation with(Operation operation, const CallOptions& options);
}  // namespace ops

}  // namespace tern
