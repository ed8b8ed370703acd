// Which plan a call runs: least predicted time over the registry, decided once per shape and remembered.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/codec/codec.h"
#include "runtime/communicator/calibration.h"
#include "runtime/communicator/codec_verdict.h"
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
  bool uneven = false;
  bool in_place = false;       ///< this rank's input is its output; does not change the choice
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
  struct Setup {
    int rank = 0;
    int n_ranks = 1;
    CostModel model;
    AlgorithmRules rules;      ///< TERN_ALGORITHM, parsed
    size_t segment_bytes = 0;  ///< TERN_SEGMENT_BYTES; 0: choose
    bool rank_order = false;   ///< TERN_DETERMINISTIC: every sum in rank order
    CodecSpeeds codecs = built_in_calibration().codecs;
  };
  explicit Planner(Setup setup)
      : setup_(std::move(setup)), node_of_(hosts_of(setup_.model, setup_.n_ranks)) {}

  /// Errors: kInvalidArgument (no such algorithm, or not for this collective), kUnsupported (codec with this
  /// algorithm).
  Result<const Decision*> decide(const Shape& shape);

  /// How a call would run with each codec that auto may take, fastest first; those that cannot run it are
  /// left out. shape.codec is not looked at. Errors: those of decide() for the dense call.
  Result<std::vector<std::pair<CodecSpec, const Decision*>>> codec_candidates(Shape shape,
                                                                              const CodecQuestion& question);
  /// Auto's choice of them, or dense. Cost: the first time for a shape a decision per codec, then as
  /// decide().
  /// Errors: the same.
  Result<CodecVerdict> weigh_codecs(const Shape& shape, const CodecQuestion& question);

  /// What copying so many bytes is predicted to take.
  double copy_seconds(size_t n_bytes) const { return static_cast<double>(n_bytes) * setup_.model.copy_beta; }

 private:
  // Sizes are told apart by their three leading bits, so that the cache is bounded whatever sizes are called.
  using Key = std::tuple<Collective, size_t, size_t, int, CodecId, int, bool, bool, std::string>;
  using ProgramKey = std::tuple<Collective, std::string, int, bool, bool, bool>;

  /// The fastest allowed codec of a size class; kNone: none can run the call.
  struct BestCodec {
    CodecSpec codec;
    double dense_seconds = 0;
    double encoded_seconds = 0;
  };
  using BestKey = std::tuple<Key, double, bool>;  ///< max_loss_gap, has_residual

  Key key_of(const Shape& shape) const;
  Result<BestCodec> find_best(const Shape& shape, const CodecQuestion& question);
  Result<Decision> choose(const Shape& shape, std::string_view only);
  Result<const Program*> program(const CandidateQuery& query, const Algorithm& algorithm);

  Setup setup_;
  std::vector<int> node_of_;  ///< see PlanRequest
  std::map<ProgramKey, std::unique_ptr<Program>> programs_;
  std::map<Key, Decision> decisions_;
  Shape last_shape_;
  const Decision* last_ = nullptr;
  std::map<BestKey, BestCodec> best_codecs_;
  Shape last_weighed_;
  CodecQuestion last_question_;
  const BestCodec* last_best_ = nullptr;
};

}  // namespace tern
