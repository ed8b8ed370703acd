// Collectives over the ranks of a world.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "runtime/base/dtype.h"
#include "runtime/bootstrap/world.h"
#include "runtime/communicator/operation.h"
#include "runtime/communicator/work.h"

namespace tern {

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
  /// One communicator for each color, of this communicator's ranks that gave it, in the order of `key` and
  /// then of rank. Its ranks and size are its own; errors go on naming ranks of the world. Collective.
  /// color:  at least 0; equal on the ranks that belong together.
  /// Errors: kInvalidArgument (color below 0); those of all_gather() and connect().
  Result<Communicator> split(int color, int key);
  /// The same ranks once more, for calls that are not ordered with this communicator's. Collective.
  Result<Communicator> duplicate();
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();

  int rank() const;
  int size() const;
  const World& world() const;
  std::string_view transport() const;

  /// Memory that collectives use without a copy (tern::allocate on this communicator's world).
  Result<Allocation> allocate(size_t n_bytes) const;

  /// out[i] = op over ranks of in[i]. in, out: n elements, n equal on all ranks; in place when in.data ==
  /// out.data. Cost: chosen plan; two-shot and ring move 2(p-1)/p n elements per rank.
  Status all_reduce(ConstView in, View out, Op op, const CallOptions& options = {});
  /// in: p*n elements, out: n elements: rank r receives the reduced elements [r*n, (r+1)*n). In place when
  /// out is that part of in.
  Status reduce_scatter(ConstView in, View out, Op op, const CallOptions& options = {});
  /// in: n elements, out: p*n elements, rank r's at [r*n, (r+1)*n). In place when in is that part of out.
  Status all_gather(ConstView in, View out, const CallOptions& options = {});
  /// data: n elements, on `root` the source, elsewhere overwritten.
  Status broadcast(View data, int root, const CallOptions& options = {});
  /// The same with a source of its own: in is read on `root` only, out is written everywhere.
  Status broadcast(ConstView in, View out, int root, const CallOptions& options = {});
  /// As all_reduce, but only `root` receives; elsewhere out is not looked at.
  Status reduce(ConstView in, View out, Op op, int root);
  /// in, out: p blocks of n / p elements: block j goes to rank j, block i comes from rank i. In place when
  /// in.data == out.data (at the price of a copy).
  Status all_to_all(ConstView in, View out, const CallOptions& options = {});
  /// in: n elements, out: p*n at `root`, rank r's at [r*n, (r+1)*n); elsewhere out is not looked at. In place
  /// at the root when in is that part of out.
  Status gather(ConstView in, View out, int root, const CallOptions& options = {});
  /// in: p*n elements at `root`, elsewhere not looked at; out: n elements, those of rank r from [r*n,
  /// (r+1)*n). In place at the root when out is that part of in.
  Status scatter(ConstView in, View out, int root, const CallOptions& options = {});
  /// in goes to the next rank, out comes from the one before (round the ring): n elements each.
  Status shift(ConstView in, View out, const CallOptions& options = {});
  /// Returns when all ranks have called it.
  Status barrier(const CallOptions& options = {});

  /// One message of n elements to rank `to`, which must call recv() for as many bytes. Between two ranks,
  /// messages and collectives must be called in the same order; calls of a group count as one.
  Status send(ConstView data, int to, const CallOptions& options = {});
  Status recv(View data, int from, const CallOptions& options = {});

  /// counts: one per rank, the same on all ranks; rank r's part holds counts[r] elements, parts lie one after
  /// the other. Otherwise as the collectives of the same names.
  Status all_gather_v(ConstView in, View out, std::span<const size_t> counts);
  Status reduce_scatter_v(ConstView in, View out, std::span<const size_t> counts, Op op);
  Status gather_v(ConstView in, View out, std::span<const size_t> counts, int root);
  Status scatter_v(ConstView in, View out, std::span<const size_t> counts, int root);
  /// to: what of `in` goes to each rank; from: what of `out` comes from each rank. What rank i sends to j
  /// must be what j expects of i. In place when in.data == out.data and all parts are equal.
  Status all_to_all_v(ConstView in, const Parts& to, View out, const Parts& from);

  /// Any operation, blocking; with options: run(ops::with(ops::reduce(...), options)).
  Status run(const Operation& operation);
  /// Several as one: collectives in the order given (the same on all ranks; small all_reduces are fused where
  /// that is predicted to be faster), then all messages at once, whose order does not matter except between
  /// the same two ranks.
  Status run_group(std::span<const Operation> operations);
  /// The same without waiting. What the operations name must stay until the work is done.
  Result<Work> start(const Operation& operation);
  Result<Work> start_group(std::span<const Operation> operations);

  Result<Work> all_reduce_async(ConstView in, View out, Op op, const CallOptions& options = {});
  Result<Work> reduce_scatter_async(ConstView in, View out, Op op, const CallOptions& options = {});
  Result<Work> all_gather_async(ConstView in, View out, const CallOptions& options = {});
  Result<Work> broadcast_async(View data, int root, const CallOptions& options = {});

  /// Of the last blocking call; empty after one that failed.
  const CallReport& last_report() const;

  /// How many collectives ran encoded or dense, and why, of all calls so far (by CodecReason).
  CodecCounts codec_counts() const;

  /// Ends every call of all ranks with kAborted. Any thread.
  void abort(const std::string& why);

 private:
  struct Impl;
  explicit Communicator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tern
