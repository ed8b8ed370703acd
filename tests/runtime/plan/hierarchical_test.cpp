#include "runtime/plan/hierarchical.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/verify.h"
#include "tests/runtime/plan/worlds.h"

namespace tern {
namespace {

/// `n_hosts` hosts of `size` ranks, neighbours together.
std::vector<int> equal_hosts(int n_hosts, int size) {
  std::vector<int> hosts;
  for (int i = 0; i < n_hosts * size; ++i) hosts.push_back(i / size);
  return hosts;
}

std::vector<Result<Plan>> all_reduce_plans(const std::vector<int>& hosts, const Hierarchy& h) {
  const TestWorld world{.n_ranks = static_cast<int>(hosts.size()), .hosts = hosts};
  std::vector<Result<Plan>> plans;
  for (int rank = 0; rank < world.n_ranks; ++rank)
    plans.push_back(hierarchical_all_reduce(world.request(rank), Groups(hosts), h));
  return plans;
}

std::vector<int> sent_between_hosts(const std::vector<Plan>& plans, const std::vector<int>& hosts) {
  std::vector<int> n_chunks(plans.size(), 0);
  for (const Plan& plan : plans)
    for (const Step& step : plan.steps)
      if (step.kind == StepKind::kSend &&
          hosts[static_cast<size_t>(step.peer)] != hosts[static_cast<size_t>(plan.rank)])
        n_chunks[static_cast<size_t>(plan.rank)] += step.src.n_chunks;
  return n_chunks;
}

TEST(Hierarchical, IsAnAllReduceForAllAlgorithmsInsideAndBetweenHosts) {
  std::vector<std::vector<int>> worlds = kHosts;
  for (const auto& [n_hosts, size] : {std::pair(1, 3), {3, 1}, {3, 4}, {4, 3}, {5, 7}, {8, 2}})
    worlds.push_back(equal_hosts(n_hosts, size));
  for (const std::string_view within : {"ring", "bi_ring", "direct", "halving_doubling"}) {
    for (const Algorithm& across : algorithms()) {
      for (const std::vector<int>& hosts : worlds) {
        for (const bool encode : {false, true}) {
          const int n_hosts = Groups(hosts).size();
          if (!across.supports({.n_ranks = n_hosts}) || (encode && !across.can_encode())) continue;
          SCOPED_TRACE(fmt::format("{} across [{}], encoded {}, inside {}", across.name,
                                   fmt::join(hosts, " "), encode, within));
          std::vector<Plan> plans;
          for (auto& plan : all_reduce_plans(hosts, {*find_algorithm(within), &across, encode})) {
            ASSERT_TRUE(plan.ok()) << plan.error().to_string();
            plans.push_back(*plan);
          }
          const Status status = verify(plans);
          EXPECT_TRUE(status.ok()) << status.error().to_string();
        }
      }
    }
  }
}

TEST(Hierarchical, MovesOnlyOneSharePerRankBetweenHosts) {
  const std::vector<int> hosts = equal_hosts(4, 8);
  std::vector<Plan> plans;
  for (auto& plan : all_reduce_plans(hosts, {*find_algorithm("direct"), *find_algorithm("ring")}))
    plans.push_back(*plan);
  EXPECT_EQ(plans[0].n_chunks, 32);
  // A ring over 4 hosts: 2 (4 - 1) messages of a quarter of 1/8.
  for (const int n : sent_between_hosts(plans, hosts)) EXPECT_EQ(n, 2 * 3);
}

TEST(Hierarchical, LetsEachChunkOfAnAllGatherEnterAHostOnce) {
  const std::vector<int> hosts = equal_hosts(3, 4);
  const Algorithm& row = **find_algorithm("hierarchical");
  for (const Collective c : {Collective::kAllGather, Collective::kReduceScatter}) {
    const auto plans = plans_of(row, TestWorld{.collective = c, .n_ranks = 12, .hosts = hosts});
    for (const int n : sent_between_hosts(plans, hosts)) EXPECT_EQ(n, 2);
  }
}

TEST(Hierarchical, SendsOneVectorToEachHostOfABroadcast) {
  for (const std::vector<int>& hosts : kHosts) {
    const TestWorld world{
        .collective = Collective::kBroadcast, .n_ranks = static_cast<int>(hosts.size()), .hosts = hosts};
    const Algorithm& row = **find_algorithm("hierarchical");
    if (!supports(row, world)) continue;
    int n = 0;
    for (const int sent : sent_between_hosts(plans_of(row, world), hosts)) n += sent;
    EXPECT_EQ(n, 2 * (Groups(hosts).size() - 1));  // halves
  }
}

TEST(Hierarchical, EncodesWhatGoesBetweenHostsAndNothingElse) {
  const Algorithm& row = **find_algorithm("hierarchical");
  for (const std::vector<int>& hosts : kHosts) {
    for (int c = 0; c < kNumCollectives; ++c) {
      TestWorld world{.collective = static_cast<Collective>(c),
                      .n_ranks = static_cast<int>(hosts.size()),
                      .hosts = hosts,
                      .encoded = true};
      for (world.root = 0; world.root < (has_root(world.collective) ? world.n_ranks : 1); ++world.root) {
        if (!supports(row, world)) continue;
        SCOPED_TRACE(label(row, world));
        const std::vector<Plan> plans = plans_of(row, world);
        const Status status = verify(plans);  // compares how every rank's output was computed
        EXPECT_TRUE(status.ok()) << status.error().to_string();
        for (const Plan& plan : plans) {
          for (const Step& step : plan.steps) {
            if (step.kind != StepKind::kSend) continue;
            const bool leaves =
                hosts[static_cast<size_t>(step.peer)] != hosts[static_cast<size_t>(plan.rank)];
            EXPECT_EQ(step.src.buffer == Buffer::kWire, leaves) << to_string(step);
          }
        }
      }
    }
  }
}

TEST(Hierarchical, HoldsForManyHosts) {
  std::vector<int> uneven;
  for (int host = 0; host < 100; ++host) uneven.insert(uneven.end(), static_cast<size_t>(1 + host % 8), host);
  const Algorithm& row = **find_algorithm("hierarchical");
  for (const std::vector<int>& hosts : {equal_hosts(128, 8), uneven}) {
    for (int c = 0; c < kNumCollectives; ++c) {
      const TestWorld world{.collective = static_cast<Collective>(c),
                            .n_ranks = static_cast<int>(hosts.size()),
                            .root = 77,
                            .hosts = hosts};
      if (!supports(row, world)) continue;
      SCOPED_TRACE(label(row, world.collective, world.n_ranks));
      const Status status = verify(plans_of(row, world));
      EXPECT_TRUE(status.ok()) << status.error().to_string();
    }
  }
}

TEST(Hierarchical, AppliesToSeveralHostsOfSeveralRanksOnly) {
  const Algorithm& row = **find_algorithm("hierarchical");
  const auto has = [&](Collective c, const std::vector<int>& hosts) {
    return supports(row,
                    TestWorld{.collective = c, .n_ranks = static_cast<int>(hosts.size()), .hosts = hosts});
  };
  EXPECT_FALSE(row.supports({.n_ranks = 4}));
  EXPECT_FALSE(has(Collective::kAllReduce, {0, 0, 0}));
  EXPECT_FALSE(has(Collective::kAllReduce, {0, 1, 2}));
  EXPECT_TRUE(has(Collective::kAllReduce, {0, 0, 1}));
  EXPECT_TRUE(has(Collective::kAllGather, {0, 1, 0, 1}));
  EXPECT_FALSE(has(Collective::kAllGather, {0, 0, 1}));
  EXPECT_FALSE(has(Collective::kAllToAll, {0, 1, 0, 1}));
}

TEST(Hierarchical, RefusesAlgorithmsThatLackWhatItNeeds) {
  const Algorithm* tree = *find_algorithm("tree");
  const Algorithm* ring = *find_algorithm("ring");
  const std::vector<int> hosts = equal_hosts(2, 2);
  EXPECT_EQ(all_reduce_plans(hosts, {tree, ring})[0].error().code, Code::kUnsupported);
  EXPECT_EQ(all_reduce_plans(hosts, {ring, ring, true})[0].error().code, Code::kUnsupported);
}

TEST(Groups, AreNumberedByTheirFirstRanks) {
  const std::vector<int> nodes = {7, 7, 3, 7, 3, 9};
  const Groups groups(nodes);
  EXPECT_EQ(groups.size(), 3);
  EXPECT_THAT(groups.members(1), ::testing::ElementsAre(2, 4));
  EXPECT_EQ(groups.group_of(3), 0);
  EXPECT_EQ(groups.place_of(3), 2);
  EXPECT_EQ(groups.largest(), 3);
  EXPECT_FALSE(groups.are_equal());
  EXPECT_EQ(groups.numbered(), (std::vector<int>{0, 0, 1, 0, 1, 2}));
  EXPECT_TRUE(Groups(std::vector<int>{5, 5}).numbered().empty());
}

}  // namespace
}  // namespace tern
