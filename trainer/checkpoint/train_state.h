// What a run must remember to go on as if it had never stopped.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>

#include "trainer/model/parameters.h"
#include "trainer/parallel/sharded_optimizer.h"
#include "trainer/storage/output_file.h"

namespace tern::trainer {

/// The run's counters; equal on all ranks.
struct Progress {
  int64_t step = 0;          ///< optimiser steps done, skipped ones included
  int64_t n_updates = 0;     ///< steps whose update was applied: the schedule's and AdamW's count
  uint64_t next_sample = 0;  ///< global index of the first training sample not used
  bool operator==(const Progress&) const = default;
};

/// Views of a rank's state; saving reads them, loading writes them. Flat buffers may be longer than the
/// layout.
struct TrainState {
  const ParameterLayout* layout = nullptr;
  std::span<float> params;             ///< all of them
  std::span<const OwnedRange> ranges;  ///< whose moments this rank holds
  std::span<float> m;
  std::span<float> v;
  std::span<float> residual;  ///< of this rank, by flat element; empty: none
  bool replicated = false;    ///< every rank holds all moments (stage 0): each saves a part
  FileId text;                ///< identity of the training text
  nlohmann::json config;      ///< the resolved configuration
};

}  // namespace tern::trainer
