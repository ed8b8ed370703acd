// The calls that compare asks every library to make, their data and the check of their results. fp32 sums,
// out of place.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tern::bench {

enum class Exercise : uint8_t { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kAllToAll };
inline constexpr std::string_view kExerciseNames[] = {"all_reduce", "reduce_scatter", "all_gather",
                                                      "broadcast", "all_to_all"};
constexpr std::string_view name(Exercise exercise) {
  return kExerciseNames[static_cast<size_t>(exercise)];
}
/// Whether a call's count is that of one rank's part.
constexpr bool is_sharded(Exercise exercise) {
  return exercise == Exercise::kReduceScatter || exercise == Exercise::kAllGather ||
         exercise == Exercise::kAllToAll;
}
Result<Exercise> parse_exercise(std::string_view text);

/// One call as a rank sees it; counts are floats.
struct ExerciseShape {
  Exercise exercise = Exercise::kAllReduce;
  int rank = 0;
  int n_ranks = 1;
  size_t count = 0;  ///< of the shard or block (where is_sharded()), or of the whole vector

  size_t n_send() const;
  size_t n_recv() const;
};

/// Fills this rank's send buffer with small integers, so that sums are exact in any order. broadcast: rank 0
/// is the root.
void fill(const ExerciseShape& shape, std::span<float> send);
/// Elements of the result that are not exactly right (broadcast: not looked at on the root).
size_t count_wrong(const ExerciseShape& shape, std::span<const float> recv);

}  // namespace tern::bench
