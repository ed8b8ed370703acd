#include "tools/built_in_clusters.h"

#include "runtime/base/nearest.h"
#include "runtime/topology/cluster_file.h"

namespace tern::tools {
namespace {

Result<Cluster> find(const std::string& name) {
  std::vector<std::string_view> known;
  for (const BuiltInCluster& cluster : built_in_clusters()) {
    if (cluster.name == name) return parse_cluster(cluster.text, cluster.name);
    known.push_back(cluster.name);
  }
  return error(Code::kInvalidArgument, "no cluster \"{}\"; {}known: {}; a file's name ends in .json", name,
               did_you_mean(name, known), fmt::join(known, ", "));
}

}  // namespace

Result<Cluster> load_cluster(const std::string& name_or_file, int n_ranks) {
  const bool is_file = name_or_file.find('/') != std::string::npos || name_or_file.ends_with(".json");
  TERN_ASSIGN(Cluster cluster, is_file ? read_cluster(name_or_file) : find(name_or_file));
  if (n_ranks > 0) cluster.n_ranks = n_ranks;
  TERN_TRY(cluster.prepare());
  return cluster;
}

}  // namespace tern::tools
