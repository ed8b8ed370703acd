// One rank's part of a perf run: times and checks one row after the other.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bench/perf_buffer.h"
#include "bench/perf_collective.h"
#include "bench/perf_data.h"
#include "bench/perf_result.h"

namespace tern::bench {

/// What a row measures.
struct RowRequest {
  uint64_t n_bytes = 0;  ///< as asked for; the row says what it became
  Dtype dtype = Dtype::kFloat32;
  Op op = Op::kSum;
  int root = 0;
};

/// Every rank makes one and calls measure() with the same requests in the same order.
class PerfRank {
 public:
  struct Setup {
    const PerfCollective* collective = nullptr;
    const PerfOptions* options = nullptr;
    CallOptions call = {};  ///< what the flags say about every call
    CodecChoice codec = {};   ///< of sums and averages of encodable floats, from the flag or the setting
    size_t most_bytes = 0;    ///< of the larger buffer, over all rows
    size_t unalign_unit = 1;  ///< bytes of the largest element type
  };
  /// Errors: kOutOfMemory.
  static Result<PerfRank> create(Communicator& comm, const Setup& setup);

  /// The row with all ranks' results in it, on every rank. Collective.
  /// Errors: those of the collective.
  Result<RowResult> measure(const RowRequest& request);

  /// The most resident memory of any rank's process, and the buffers of one rank, as text. Collective.
  Result<std::string> memory_report();

 private:
  struct Placement {
    bool in_place = false;
    ConstView send;
    View recv;
    PerfBuffer* whole = nullptr;  ///< the buffer that holds recv
    size_t whole_bytes = 0;       ///< of it that the row uses
  };
  struct Timing {
    double seconds = 0;
    std::vector<double> iterations;
    CallReport report;
  };
  struct Local {
    Timing timing;
    Verdict verdict;
  };

  PerfRank(Communicator& comm, const Setup& setup) : comm_(&comm), setup_(setup) {}
  Placement placement(const RowRequest& request, bool in_place);
  PerfCall call_on(const RowRequest& request, const Placement& at);
  /// Finds out which codec the row's calls run with.
  Status settle_codec(const RowRequest& request);
  bool may_encode(const RowRequest& request) const;
  bool has_residual(const RowRequest& request) const;
  bool lossy(const RowRequest& request) const;
  /// Test data for the row; check round `seed`.
  std::unique_ptr<TestData> data_for(const RowRequest& request, uint64_t seed) const;
  void prepare(const Placement& at, const TestData& data);
  /// Runs the operations of one timed iteration.
  Status meet();
  Status iterate(const std::vector<Operation>& operations, CallReport& report);
  std::vector<Operation> operations_of(const PerfCall& call, int n_calls) const;
  Result<Timing> time(const RowRequest& request, const Placement& at);
  Result<Verdict> check(const RowRequest& request, const Placement& at);
  Result<PlacementResult> over_ranks(const RowRequest& request, const Local& local);
  /// values[rank] of every rank, n each. Collective.
  Result<std::vector<std::vector<double>>> gather(const std::vector<double>& values);
  double now() const;
  PerfShape shape_of(const RowRequest& request) const;

  Communicator* comm_;
  Setup setup_;
  std::optional<PerfBuffer> send_, recv_;
  CodecSpec codec_;  ///< of the row under way
  std::vector<float> residual_;
  std::vector<size_t> counts_;
};

}  // namespace tern::bench
