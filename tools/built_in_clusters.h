// The cluster files of tools/clusters, built into the program.
#pragma once

#include <span>
#include <string_view>

#include "runtime/topology/cluster.h"

namespace tern::tools {

struct BuiltInCluster {
  std::string_view name;
  std::string_view text;  ///< JSON; see runtime/topology/cluster_file.h
};
std::span<const BuiltInCluster> built_in_clusters();

/// name_or_file: a built-in cluster, or a path (it holds a "/" or ends in ".json"). n_ranks: 0: as the
/// cluster says; else as many, in as many groups as they fill. Errors: kNotFound, kInvalidArgument, naming
/// the built-in clusters or what is wrong with the file.
Result<Cluster> load_cluster(const std::string& name_or_file, int n_ranks);

}  // namespace tern::tools
