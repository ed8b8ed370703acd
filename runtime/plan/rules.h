// Which algorithm for which collective and size, as text: TERN_ALGORITHM, --algorithm and printed decisions.
//
//   spec   := entry { ";" entry }
//   entry  := choice | collective ":" (choice | range { "," range })
//   range  := size "-" size "=" choice            from (included) to (not included) bytes of the whole vector
//   choice := algorithm [ "@" size ]              size of the segments of a chunk; 0: not cut
//
// "all_reduce:0-64k=tree,64k-inf=ring@1M;broadcast:tree". A choice alone holds for every collective that the
// algorithm has, and a choice without a range for every size. What no rule covers is left to the planner.
#pragma once

#include <array>
#include <optional>

#include "runtime/plan/registry.h"

namespace tern {

/// An algorithm, and how to cut chunks if that is said.
struct AlgorithmChoice {
  const Algorithm* algorithm = nullptr;
  std::optional<size_t> segment_bytes;  ///< none: the planner's choice; 0: not cut
  bool operator==(const AlgorithmChoice&) const = default;
};

/// One range of sizes and what runs there.
struct AlgorithmRule {
  uint64_t from = 0;  ///< bytes
  uint64_t to = 0;    ///< bytes, not included; kInfiniteSize: no end
  AlgorithmChoice choice;
  std::string text;  ///< the choice as text: "ring@1M"
  bool operator==(const AlgorithmRule&) const = default;
};

/// Rules by collective, sorted by size and not overlapping. Value type.
struct AlgorithmRules {
  std::array<std::vector<AlgorithmRule>, kNumCollectives> of;

  /// The choice for a vector of n_bytes as text, for CandidateQuery::only; empty when no rule covers it.
  /// Lives as long as the rules.
  std::string_view find(Collective collective, size_t n_bytes) const;
  bool operator==(const AlgorithmRules&) const = default;
};

/// Whether the text is rules, not the name of one algorithm.
bool is_rules(std::string_view text);

/// Errors of both: kInvalidArgument, with the position and what is allowed there (unknown name, bad size,
/// empty or overlapping range, an algorithm that does not have the collective).
Result<AlgorithmChoice> parse_algorithm_choice(std::string_view text);
Result<AlgorithmRules> parse_algorithm_rules(std::string_view spec);

/// In the grammar above; parsed, they give equal values.
std::string to_string(const AlgorithmChoice& choice);
std::string to_string(const AlgorithmRules& rules);

}  // namespace tern
