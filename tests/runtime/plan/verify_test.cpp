#include "runtime/plan/verify.h"

#include <gtest/gtest.h>

#include "tests/runtime/plan/worlds.h"

namespace tern {
namespace {

std::vector<int> rank_counts() {
  std::vector<int> counts;
  for (int p = 1; p <= 64; ++p) counts.push_back(p);
  counts.insert(counts.end(), {127, 128, 129});
  return counts;
}

TEST(Verify, EveryAlgorithmIsCorrectForEveryCollectiveAndRankCount) {
  for (const int p : rank_counts()) {
    for_each_pair(p, [&](const Algorithm& algorithm, Collective collective) {
      const int n_roots = has_root(collective) && p <= 17 ? p : 1;
      for (int root = 0; root < n_roots; ++root) {
        SCOPED_TRACE(label(algorithm, collective, p, root));
        const Status status = verify(plans_of(algorithm, collective, p, root));
        EXPECT_TRUE(status.ok()) << status.error().to_string();
      }
    });
  }
}

TEST(Verify, HoldsForAThousandRanks) {
  for (const auto& [algorithm, collective] : {std::pair("halving_doubling", Collective::kReduceScatter),
                                              {"tree", Collective::kAllReduce},
                                              {"ring", Collective::kBroadcast},
                                              {"dissemination", Collective::kBarrier}}) {
    for (const int p : {1023, 1024}) {
      SCOPED_TRACE(fmt::format("{} {}, p = {}", algorithm, name(collective), p));
      const Status status = verify(plans_of(algorithm, collective, p));
      EXPECT_TRUE(status.ok()) << status.error().to_string();
    }
  }
}

}  // namespace
}  // namespace tern
