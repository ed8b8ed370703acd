// The angles of rotary position embedding, as tables of cosines and sines.
#pragma once

#include <vector>

#include "trainer/model/model_config.h"

namespace tern::trainer {

/// Angle per position of each lane pair, in radians: rope_theta^(-2i / head_dim), stretched as rope_scaling
/// says.
std::vector<double> rope_frequencies(const LlamaConfig& config);

/// cosines, sines: (tokens, head_dim / 2). Angles are computed in fp64 and rounded once.
template <class T>
struct RopeTable {
  std::vector<T> cosines;
  std::vector<T> sines;
  RopeTable(const LlamaConfig& config, int tokens);
};

extern template struct RopeTable<float>;
extern template struct RopeTable<double>;

}  // namespace tern::trainer
