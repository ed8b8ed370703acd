// Names of the files that each rank writes into a checkpoint.
#pragma once

#include <fmt/format.h>

#include <string>

namespace tern::trainer {

inline std::string optimizer_shard_name(int rank, int n_ranks) {
  return fmt::format("optimizer-{:05}-of-{:05}.safetensors", rank, n_ranks);
}
inline std::string residual_shard_name(int rank, int n_ranks) {
  return fmt::format("residual-{:05}-of-{:05}.safetensors", rank, n_ranks);
}

}  // namespace tern::trainer
