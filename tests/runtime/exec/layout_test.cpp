#include "runtime/exec/layout.h"

#include <gtest/gtest.h>

#include <vector>

namespace tern {
namespace {

constexpr std::array<Collective, 4> kMoving = {Collective::kAllReduce, Collective::kReduceScatter,
                                               Collective::kAllGather, Collective::kBroadcast};

TEST(Layout, EveryElementLiesInExactlyOneSegmentOfOneChunk) {
  for (const Collective collective : kMoving) {
    for (const int n_chunks : {1, 2, 3, 7, 16}) {
      for (const size_t n : {0, 1, 6, 7, 15, 16, 1000, 4097}) {
        for (const size_t segment : {0, 1, 16, 100, 5000}) {
          for (const size_t grain : {1, 16, 128}) {
            const Layout layout(collective, n_chunks, n, {.segment = segment, .grain = grain});
            std::vector<int> seen(n);
            for (size_t s = 0; s < layout.n_segments(); ++s) {
              for (int c = 0; c < n_chunks; ++c) {
                const Range r = layout.range(c, 1, s);
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
  const Layout layout(Collective::kReduceScatter, 4, 4000, {.segment = 128, .grain = 128});
  ASSERT_GT(layout.n_segments(), 1U);
  for (size_t s = 0; s < layout.n_segments(); ++s) {
    const Range r = layout.range(2, 1, s);
    EXPECT_GE(r.begin, 2000U);
    EXPECT_LE(r.end, 3000U);
  }
}

TEST(Layout, RunsOfChunksAreContiguous) {
  const Layout layout(Collective::kAllReduce, 8, 1003, {.segment = 16, .grain = 16});
  for (size_t s = 0; s < layout.n_segments(); ++s) {
    const Range run = layout.range(2, 4, s);
    EXPECT_EQ(run.begin, layout.range(2, 1, s).begin);
    EXPECT_EQ(run.end, layout.range(5, 1, s).end);
  }
}

}  // namespace
}  // namespace tern
