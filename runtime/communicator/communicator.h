// Collectives over the ranks of a world.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/base/dtype.h"
#include "runtime/bootstrap/world.h"
#include "runtime/codec/codec.h"
#include "runtime/communicator/work.h"
#include "runtime/plan/plan.h"

namespace tern {

/// Choices for one call; the default leaves all of them to the planner and the settings.
struct CallOptions {
  std::optional<CodecSpec>
      codec;  ///< nothing: TERN_CODEC where it applies; kNone: dense whatever TERN_CODEC says
  float* residual =
      nullptr;  ///< error-feedback memory, as many floats as the input holds; mandatory for biased codecs
  std::string_view algorithm;  ///< "" : planner, or TERN_ALGORITHM
  uint32_t step = 0;           ///< training step and bucket, part of the wire header of encoded messages
  uint32_t bucket = 0;
  Seconds timeout{0};  ///< 0: TERN_TIMEOUT
};

/// A group of ranks that run collectives together.
///
/// Threads:  calls may come from several threads, but all ranks must make the same calls in the same order;
/// asynchronous
///           calls run in call order on a progress thread that sleeps while there is nothing to do.
/// Results:  identical to the bit on all ranks, and from run to run for a given plan.
/// Errors:   of every collective: kInvalidArgument, kUnsupported (nothing was sent; the communicator goes
/// on);
///           kMismatch (ranks called different things; says who called what), kPeerLost, kTimeout, kAborted
///           (the output is unspecified; the communicator then accepts only destruction).
class Communicator {
 public:
  /// Connects the world. Collective. Errors: those of connect() (transport.h).
  static Result<Communicator> create(const World& world);
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();

  int rank() const;
  int size() const;
  const World& world() const;
  std::string_view transport() const;

  /// Memory that collectives use without a copy (tern::allocate on this communicator's world).
  Result<Allocation> allocate(size_t n_bytes);

  /// out[i] = op over ranks of in[i]. in, out: n elements, n equal on all ranks; in place when in.data ==
  /// out.data. Cost: chosen plan; two-shot and ring move 2(p-1)/p n elements per rank.
  Status all_reduce(ConstView in, View out, Op op, const CallOptions& options = {});
  /// in: p*n elements, out: n elements: rank r receives the reduced elements [r*n, (r+1)*n). In place when
  /// out is that part of in.
  Status reduce_scatter(ConstView in, View out, Op op, const CallOptions& options = {});
  /// in: n elements, out: p*n elements, rank r's at [r*n, (r+1)*n). In place when in is that part of out.
  Status all_gather(ConstView in, View out, const CallOptions& options = {});
  /// out: n elements, on `root` the source, elsewhere overwritten.
  Status broadcast(View data, int root, const CallOptions& options = {});
  /// Returns when all ranks have called it.
  Status barrier(const CallOptions& options = {});

  Result<Work> all_reduce_async(ConstView in, View out, Op op, const CallOptions& options = {});
  Result<Work> reduce_scatter_async(ConstView in, View out, Op op, const CallOptions& options = {});
  Result<Work> all_gather_async(ConstView in, View out, const CallOptions& options = {});
  Result<Work> broadcast_async(View data, int root, const CallOptions& options = {});

  /// Of the last blocking call of this thread's communicator that ended well.
  const CallReport& last_report() const;

  /// Ends every call of all ranks with kAborted. Any thread.
  void abort(const std::string& why);

 private:
  struct Impl;
  explicit Communicator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tern
