// A collective under way.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/codec/codec.h"
#include "runtime/codec/encoding_error.h"
#include "runtime/communicator/codec_verdict.h"

namespace tern {

/// What one call did, or a group: then the numbers are sums, the rest of its last call. All of this rank.
struct CallReport {
  std::string algorithm;
  CodecSpec codec;
  CodecReason codec_reason = CodecReason::kDense;
  size_t segment_bytes = 0;            ///< of a chunk; 0: not cut
  size_t bytes_on_wire = 0;            ///< payload this rank sent, wire headers of codecs included
  double predicted_seconds = 0;        ///< by the planner
  double predicted_dense_seconds = 0;  ///< of the same call not encoded, where codec auto weighed it
  double measured_seconds = 0;         ///< from start of execution to completion
  double queued_seconds = 0;  ///< between the call and the start of its execution (asynchronous calls)
  bool non_finite = false;    ///< an encoded block of this rank held a NaN or an infinity
  uint32_t n_saturated = 0;   ///< elements that hit the codec's range
  EncodingError error;        ///< of what this rank encoded, where CallOptions::measures_error

  /// Back to the beginning, keeping the text's memory.
  void clear() {
    std::string text = std::move(algorithm);
    *this = {};
    algorithm = std::move(text);
  }
};

struct WorkState;

/// Handle of an asynchronous call. Move-only; destroying it before the call is done waits for it (or its
/// deadline).
///
/// Threads: one at a time.
class Work {
 public:
  Work();
  Work(Work&&) noexcept;
  Work& operator=(Work&&) noexcept;
  ~Work();

  /// True when the call ended, well or not. Costs one atomic load.
  bool done() const;
  /// Waits for the end. Errors: those of the collective; kTimeout when `deadline` passes first (the call goes
  /// on).
  Status wait(Deadline deadline = Deadline());
  /// The report of a call that ended well.
  const CallReport& report() const;

 private:
  friend class Communicator;
  explicit Work(std::shared_ptr<WorkState> state);
  std::shared_ptr<WorkState> state_;  // shared with the progress thread, whichever lets go last
};

}  // namespace tern
