// Small clusters for tests.
#pragma once

#include <vector>

#include "runtime/topology/cluster.h"

namespace tern {

inline ClusterDevice fast_device() {
  return {.name = "fast",
          .copy_bytes_per_s = 1e18,
          .reduce_bytes_per_s = 1e18,
          .encode_bytes_per_s = 1e18,
          .decode_bytes_per_s = 1e18};
}

inline Cluster prepared(Cluster cluster) {
  TERN_CHECK(cluster.prepare().ok());
  return cluster;
}

/// Every rank has a full-duplex port of its own into a switch that is never full.
inline Cluster flat(int n_ranks, double alpha = 20e-6, double bytes_per_s = 1e9) {
  Cluster cluster;
  cluster.name = "flat";
  cluster.n_ranks = n_ranks;
  cluster.device = fast_device();
  cluster.levels = {{"host", 1, {.name = "port", .bytes_per_s = bytes_per_s, .alpha = alpha}}};
  return prepared(cluster);
}

/// Nodes of `per_node` ranks with `n_nics` NICs, a tenth as fast as the links inside.
inline Cluster nodes(int n_ranks, int per_node, int n_nics) {
  Cluster cluster;
  cluster.name = fmt::format("nodes of {} with {} NICs", per_node, n_nics);
  cluster.n_ranks = n_ranks;
  cluster.device = {.name = "device",
                    .copy_bytes_per_s = 100e9,
                    .reduce_bytes_per_s = 70e9,
                    .encode_bytes_per_s = 50e9,
                    .decode_bytes_per_s = 60e9};
  cluster.message_overhead = 0.3e-6;
  cluster.round_overhead = 1e-6;
  cluster.levels = {{"gpu", 1, {.name = "nvlink", .bytes_per_s = 10e9, .alpha = 2e-6, .inside_only = true}},
                    {"node", per_node, {.name = "nic", .count = n_nics, .bytes_per_s = 1e9, .alpha = 10e-6}}};
  return prepared(cluster);
}

/// The same in groups of two nodes that share one half-duplex way out.
inline Cluster oversubscribed(int n_ranks, int per_node) {
  Cluster cluster = nodes(n_ranks, per_node, 1);
  cluster.name = "oversubscribed";
  cluster.levels.push_back(
      {"leaf", 2, {.name = "uplink", .bytes_per_s = 1.5e9, .alpha = 30e-6, .full_duplex = false}});
  return prepared(cluster);
}

}  // namespace tern
