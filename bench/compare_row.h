// A row of compare: medians, spreads and the ratio, as values and as text.
#pragma once

#include <string>
#include <vector>

#include "bench/peers/exercise.h"

namespace tern::bench {

/// What one library took for one row.
struct CompareCell {
  std::string name;
  bool offered = true;               ///< false: the library has no such collective
  std::vector<double> seconds = {};  ///< per call, one value per repetition
  size_t n_wrong = 0;

  double median() const;
  double spread_percent() const;  ///< (largest - smallest) / median
};

struct CompareRow {
  Exercise exercise = Exercise::kAllReduce;
  uint64_t n_bytes = 0;  ///< of the whole vector
  int n_ranks = 2;
  bool shared = true;  ///< Tern's buffers: tern::allocate or plain memory
  CompareCell tern;
  std::vector<CompareCell> peers;

  /// The best peer, or null.
  const CompareCell* best_peer() const;
  /// Best peer's median / Tern's: above 1, Tern is faster. 0 without a peer.
  double ratio() const;
  size_t n_wrong() const;
};

/// What was measured, for the head of the text and the JSON.
struct CompareSetting {
  std::vector<std::string> versions;  ///< "openmpi 4.1.4"
  std::string command;
  int repetitions = 5;
  int n_cores = 1;
};

std::string compare_head(const CompareSetting& setting, const std::vector<std::string>& peers);
std::string compare_line(const CompareRow& row);
std::string compare_json(const CompareSetting& setting, const std::vector<CompareRow>& rows);

}  // namespace tern::bench
