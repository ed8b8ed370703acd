// Which plan a call runs: least predicted time over the registry, decided once per shape and remembered.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/codec/codec.h"
#include "runtime/exec/program.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/select.h"
#include "runtime/plan/simulate.h"

namespace tern {

/// The shape of a call that decides its plan.
struct Shape {
  Collective collective = Collective::kBarrier;
  size_t n_bytes = 0;  ///< the whole vector, dense
  size_t elt = 4;      ///< bytes per element
  int root = 0;
  CodecSpec codec;
  std::string_view algorithm;  ///< "": free choice
  bool operator==(const Shape&) const = default;
};

/// What was decided for a shape. Lives as long as the planner.
struct Decision {
  const Program* program = nullptr;
  std::string_view algorithm;
  size_t segment_bytes = 0;  ///< of a chunk; 0: not cut
  double predicted_seconds = 0;
  uint32_t fingerprint = 0;  ///< equal on ranks that decided alike
};

/// One rank's decisions. All ranks decide alike because they price with the same model.
///
/// Threads: one at a time.
class Planner {
 public:
  /// rules: TERN_ALGORITHM parsed; segment_bytes: TERN_SEGMENT_BYTES (0: choose).
  Planner(int rank, int n_ranks, CostModel model, AlgorithmRules rules, size_t segment_bytes);

  /// Errors: kInvalidArgument (no such algorithm, or not for this collective), kUnsupported (codec with this
  /// algorithm).
  Result<const Decision*> decide(const Shape& shape);

 private:
  // Sizes are told apart by their three leading bits, so that the cache is bounded whatever sizes are called.
  using Key = std::tuple<Collective, size_t, size_t, int, CodecId, int, std::string>;
  using ProgramKey = std::tuple<Collective, std::string, int, bool>;

  Result<Decision> choose(const Shape& shape, std::string_view only);
  Result<const Program*> program(const CandidateQuery& query, const Algorithm& algorithm);

  int rank_;
  int n_ranks_;
  CostModel model_;
  AlgorithmRules rules_;
  size_t segment_bytes_;
  std::map<ProgramKey, std::unique_ptr<Program>> programs_;
  std::map<Key, Decision> decisions_;
  Shape last_shape_;
  const Decision* last_ = nullptr;
};

}  // namespace tern
