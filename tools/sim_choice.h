// Which plan is predicted to be fastest on a cluster.
#pragma once

#include <string>
#include <vector>

#include "runtime/codec/codec_choice.h"
#include "runtime/plan/simulate_cluster.h"

namespace tern::tools {

/// Which ranks make a call together: all groups of `size` ranks that are `stride` apart call at the same
/// time.
struct SimGroups {
  int size = 0;  ///< 0: all ranks
  int stride = 1;
};

/// A call on a cluster that is only thought of.
struct SimQuestion {
  Cluster cluster;
  SimGroups groups;
  Collective collective = Collective::kAllReduce;
  int root = 0;
  uint64_t n_bytes = 0;            ///< the whole vector, dense
  size_t elt = 4;                  ///< bytes per dense element
  std::string algorithm = "auto";  ///< or one of algorithm_names(), optionally with its segments: "ring@1M"
  std::string codec = "auto";      ///< the grammar of parse_codec_choice(); auto: as if with a residual
};

struct SimChoice {
  std::string algorithm;
  size_t segment_bytes = 0;  ///< 0: not cut
  CodecSpec codec;
  ClusterPrediction prediction;
  int n_simulated = 0;  ///< candidates; the others cannot be faster or cannot run
  int n_candidates = 0;
};

/// Names that a question's algorithm may have: the registry's, and for an all_reduce of all ranks
/// "two_level(N, A, B)": A inside groups of N ranks that are neighbours on the cluster, B across them (dense
/// inside, encoded across).
std::vector<std::string> algorithm_names(const SimQuestion& question);

/// Found by branch and bound over algorithms, segment sizes and codecs.
/// Cost:   a fold per algorithm that is not ruled out; see simulate(). 1024 ranks take seconds, 16384 without
/// a
///         codec a minute, with one about four: making and folding encoded plans grows with the square.
/// Errors: kInvalidArgument (no such algorithm, codec, root or groups), kUnsupported (nothing can run the
/// call).
Result<SimChoice> fastest_on(const SimQuestion& question);

}  // namespace tern::tools
