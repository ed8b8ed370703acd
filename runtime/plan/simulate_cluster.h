// The price of a plan on a cluster whose links are shared: one NIC for the ranks of a node, one pipe for a
// site.
#pragma once

#include "runtime/plan/simulate_fold.h"

namespace tern {

/// How a call runs on a cluster.
struct ClusterCall {
  size_t n_bytes = 0;        ///< the whole vector
  size_t segment_bytes = 0;  ///< a chunk is cut in segments of at most this; 0: not cut
  double wire_ratio = 1;     ///< encoded bytes per dense byte
};

/// What one level's links carried.
struct LinkUse {
  int level = 0;
  int n_links = 0;             ///< directions counted apart
  double bytes = 0;            ///< over all of them
  double busiest_bytes = 0;    ///< over one
  double busiest_seconds = 0;  ///< that it takes at its full speed
  int busiest = 0;             ///< its number in the cluster (the lowest of equals)
};

struct ClusterPrediction {
  Prediction call;
  std::vector<LinkUse> links;       ///< by level
  int limiting_level = -1;          ///< of the link that is busy longest; -1: no bytes moved
  double busiest_work_seconds = 0;  ///< of a rank that reduces, copies, encodes and decodes
  int n_classes = 0;                ///< of ranks that were simulated
};

/// Simulates one call, started at the same time by all ranks, of plans that fold() has folded. The rules of
/// simulate() hold, and on top: links are shared (simulate_fabric.h), a message's first bytes are at the
/// receiver alpha after they were sent, and a rank spends its overhead per message.
///
/// Cost: O(steps x segments) of a rank of each class, times the flows that share links at a time.
ClusterPrediction simulate(const simulation::FoldedPlans& plans, const ClusterCall& call,
                           const Cluster& cluster);

/// Seconds below which no simulation of `plan` ends, from one rank's steps alone. Cost: O(steps).
double least_seconds(const Plan& plan, const ClusterCall& call, const Cluster& cluster);

}  // namespace tern
