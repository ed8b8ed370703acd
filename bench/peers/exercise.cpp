#include "bench/peers/exercise.h"

#include <array>

namespace tern::bench {
namespace {

// A prime, so that no shard begins where the numbers repeat.
constexpr size_t kPeriod = 8191;

float sent_by(int rank, size_t idx) {
  const size_t mixed = (idx % kPeriod) * 2654435761U + static_cast<size_t>(rank) * 40503U;
  return static_cast<float>((mixed >> 8) % 201) - 100;
}

float sum_of(int n_ranks, size_t idx) {
  float sum = 0;
  for (int r = 0; r < n_ranks; ++r) sum += sent_by(r, idx);
  return sum;
}

/// Wrong elements of `part`, whose first element is number `begin` of what `expected` gives.
template <class F>
size_t count_wrong_in(std::span<const float> part, size_t begin, F&& expected) {
  std::array<float, kPeriod> table;
  for (size_t i = 0; i < kPeriod; ++i) table[i] = expected(i);
  size_t n_wrong = 0;
  for (size_t i = 0; i < part.size(); ++i) n_wrong += part[i] == table[(begin + i) % kPeriod] ? 0 : 1;
  return n_wrong;
}

}  // namespace

Result<Exercise> parse_exercise(std::string_view text) {
  for (size_t i = 0; i < std::size(kExerciseNames); ++i)
    if (kExerciseNames[i] == text) return static_cast<Exercise>(i);
  return error(Code::kInvalidArgument, "'{}' is not compared; allowed: {}", text,
               fmt::join(kExerciseNames, ", "));
}

size_t ExerciseShape::n_send() const {
  const bool whole = exercise == Exercise::kReduceScatter || exercise == Exercise::kAllToAll;
  return whole ? count * static_cast<size_t>(n_ranks) : count;
}
size_t ExerciseShape::n_recv() const {
  const bool whole = exercise == Exercise::kAllGather || exercise == Exercise::kAllToAll;
  return whole ? count * static_cast<size_t>(n_ranks) : count;
}

void fill(const ExerciseShape& shape, std::span<float> send) {
  for (size_t i = 0; i < send.size(); ++i) send[i] = sent_by(shape.rank, i);
}

size_t count_wrong(const ExerciseShape& shape, std::span<const float> recv) {
  const auto sum = [&](size_t i) { return sum_of(shape.n_ranks, i); };
  switch (shape.exercise) {
    case Exercise::kAllReduce:
      return count_wrong_in(recv, 0, sum);
    case Exercise::kReduceScatter:
      return count_wrong_in(recv, static_cast<size_t>(shape.rank) * shape.count, sum);
    case Exercise::kBroadcast:
      if (shape.rank == 0) return 0;  // the root sends from its send buffer
      return count_wrong_in(recv, 0, [](size_t i) { return sent_by(0, i); });
    case Exercise::kAllGather:
    case Exercise::kAllToAll:
      break;
  }
  const bool is_gather = shape.exercise == Exercise::kAllGather;
  const size_t begin = is_gather ? 0 : static_cast<size_t>(shape.rank) * shape.count;
  size_t n_wrong = 0;
  for (int r = 0; r < shape.n_ranks; ++r) {
    const auto part = recv.subspan(static_cast<size_t>(r) * shape.count, shape.count);
    n_wrong += count_wrong_in(part, begin, [r](size_t i) { return sent_by(r, i); });
  }
  return n_wrong;
}

}  // namespace tern::bench
