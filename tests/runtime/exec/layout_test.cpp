#include "runtime/exec/layout.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace tern {
namespace {

constexpr std::array<Collective, 4> kMoving = {Collective::kAllReduce, Collective::kReduceScatter,
                                               Collective::kAllGather, Collective::kBroadcast};

Plan plan_of(Collective collective, int n_chunks, int n_ranks = 1) {
  Plan plan;
  plan.collective = collective;
  plan.n_chunks = n_chunks;
  plan.n_ranks = n_ranks;
  return plan;
}

Ref at(int chunk, int n_chunks = 1) {
  return {Buffer::kInput, static_cast<int16_t>(chunk), static_cast<int16_t>(n_chunks)};
}

TEST(Layout, EveryElementLiesInExactlyOneSegmentOfOneChunk) {
  for (const Collective collective : kMoving) {
    for (const int n_chunks : {1, 2, 3, 7, 16}) {
      for (const size_t n : {0, 1, 6, 7, 15, 16, 1000, 4097}) {
        for (const size_t segment : {0, 1, 16, 100, 5000}) {
          for (const size_t grain : {1, 16, 128}) {
            const Layout layout(plan_of(collective, n_chunks), {.n = n},
                                {.segment = segment, .grain = grain});
            std::vector<int> seen(n);
            for (size_t s = 0; s < layout.n_segments(); ++s) {
              for (int c = 0; c < n_chunks; ++c) {
                const Range r = layout.range(at(c), s);
                ASSERT_LE(r.begin, r.end);
                ASSERT_LE(r.size(), layout.max_chunk());
                for (size_t i = r.begin; i < r.end; ++i) seen.at(i)++;
              }
            }
            for (size_t i = 0; i < n; ++i) {
              ASSERT_EQ(seen[i], 1) << name(collective) << " C=" << n_chunks << " n=" << n
                                    << " segment=" << segment << " grain=" << grain << " element " << i;
            }
          }
        }
      }
    }
  }
}

TEST(Layout, FixedOwnersKeepTheirChunkWhateverTheSegment) {
  const Layout layout(plan_of(Collective::kReduceScatter, 4), {.n = 4000}, {.segment = 128, .grain = 128});
  ASSERT_GT(layout.n_segments(), 1U);
  for (size_t s = 0; s < layout.n_segments(); ++s) {
    const Range r = layout.range(at(2), s);
    EXPECT_GE(r.begin, 2000U);
    EXPECT_LE(r.end, 3000U);
  }
}

TEST(Layout, RunsOfChunksAreContiguous) {
  const Layout layout(plan_of(Collective::kAllReduce, 8), {.n = 1003}, {.segment = 16, .grain = 16});
  for (size_t s = 0; s < layout.n_segments(); ++s) {
    const Range run = layout.range(at(2, 4), s);
    EXPECT_EQ(run.begin, layout.range(at(2), s).begin);
    EXPECT_EQ(run.end, layout.range(at(5), s).end);
  }
}

TEST(Layout, UnevenCountsAreCutInEveryRanksOwnPart) {
  const std::vector<size_t> offsets = {0, 5, 5, 305, 1000};
  for (const int per_rank : {1, 2, 3}) {
    for (const size_t segment : {0, 16, 64}) {
      const Layout layout(plan_of(Collective::kAllGather, 4 * per_rank, 4), {.n = 1000, .offsets = offsets},
                          {.segment = segment, .grain = 16});
      std::vector<int> owner(1000, -1);
      for (size_t s = 0; s < layout.n_segments(); ++s) {
        for (int c = 0; c < 4 * per_rank; ++c) {
          const Range r = layout.range(at(c), s);
          ASSERT_LE(r.size(), layout.max_chunk());
          for (size_t i = r.begin; i < r.end; ++i) {
            ASSERT_EQ(owner.at(i), -1) << "element " << i << " lies in two places";
            owner[i] = c / per_rank;
          }
        }
      }
      for (size_t i = 0; i < owner.size(); ++i)
        ASSERT_EQ(owner[i], i < 5 ? 0 : i < 305 ? 2 : 3) << "element " << i << " segment " << segment;
    }
  }
}

}  // namespace
}  // namespace tern
