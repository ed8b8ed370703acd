#include "trainer/kernels/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace tern::trainer {
namespace {

TEST(TeamTest, PartsCoverEveryIndexOnceAndAreCutAtTheGrain) {
  for (const int64_t n : {0, 1, 5, 47, 48, 1000}) {
    for (const int64_t grain : {1, 3, 48}) {
      for (const int64_t n_parts : {1, 2, 3, 7}) {
        int64_t next = 0;
        for (int64_t i = 0; i < n_parts; ++i) {
          const Range part = part_of(n, i, n_parts, grain);
          EXPECT_EQ(part.begin, next);
          EXPECT_TRUE(part.begin % grain == 0 || part.begin == n);
          next = part.end;
        }
        EXPECT_EQ(next, n) << n << " in " << n_parts << " by " << grain;
      }
    }
  }
}

TEST(TeamTest, EveryMemberRunsOnceInEveryRound) {
  for (const int size : {1, 2, 5}) {
    Team team(size);
    std::vector<int> calls(static_cast<size_t>(size), 0);
    for (int round = 0; round < 500; ++round)
      team.run([&](int member) { ++calls[static_cast<size_t>(member)]; });
    for (const int n : calls) EXPECT_EQ(n, 500) << "team of " << size;
  }
}

TEST(TeamTest, WritesOfOneRoundAreSeenInTheNext) {
  Team team(3);
  std::vector<int64_t> values(3, 0);
  for (int round = 0; round < 1000; ++round) {
    // every member reads its neighbour's value of the last round, which only the join in between orders
    std::vector<int64_t> next(3);
    team.run([&](int m) { next[static_cast<size_t>(m)] = values[static_cast<size_t>((m + 1) % 3)] + 1; });
    values = next;
  }
  EXPECT_EQ(values, std::vector<int64_t>(3, 1000));
}

TEST(TeamTest, RangesAreSharedOutAndEmptyOnesSkipped) {
  Team team(4);
  std::atomic<int64_t> sum = 0;
  std::atomic<int> n_calls = 0;
  team.for_range(2, 1, [&](Range r) {
    EXPECT_GT(r.size(), 0);
    ++n_calls;
    for (int64_t i = r.begin; i < r.end; ++i) sum += i + 1;
  });
  EXPECT_EQ(sum, 3);
  EXPECT_LE(n_calls, 2);
}

}  // namespace
}  // namespace tern::trainer
