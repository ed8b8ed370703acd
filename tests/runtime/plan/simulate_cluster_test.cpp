#include "runtime/plan/simulate_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/compose.h"
#include "tests/runtime/plan/clusters.h"
#include "tests/runtime/plan/worlds.h"

namespace tern {
namespace {

using simulation::fold;
using simulation::FoldedPlans;
using simulation::FoldRequest;

FoldRequest request_of(const Algorithm& algorithm, Collective collective, int p, bool encoded = false) {
  return {.plan_of = [&algorithm, collective, p, encoded](int rank) -> Result<Plan> {
    Plan plan = algorithm.build({.collective = collective, .rank = rank, .n_ranks = p});
    if (!encoded) return plan;
    return with_codec(plan);
  }};
}

FoldedPlans folded(std::string_view algorithm, Collective collective, const Cluster& cluster) {
  auto plans = fold(cluster, request_of(**find_algorithm(algorithm), collective, cluster.n_ranks));
  EXPECT_TRUE(plans.ok()) << plans.error().message;
  return std::move(plans).value();
}

double seconds(std::string_view algorithm, Collective collective, const Cluster& cluster, size_t n_bytes,
               size_t segment = 0) {
  return simulate(folded(algorithm, collective, cluster), {n_bytes, segment}, cluster).call.seconds;
}

void expect_close(double got, double want, double tolerance = 1e-6) {
  EXPECT_NEAR(got, want, want * tolerance);
}

TEST(SimulateCluster, AgreesWithTheClosedFormsOfHockneyAndThakur) {
  const double alpha = 20e-6;
  const double beta = 1e-9;
  for (const int p : {2, 3, 4, 7, 8, 16, 33, 64, 256}) {
    for (const size_t n_bytes : {size_t{1} << 10, size_t{1} << 20, size_t{1} << 26}) {
      SCOPED_TRACE(fmt::format("p = {}, {} bytes", p, n_bytes));
      const Cluster cluster = flat(p, alpha, 1 / beta);
      const auto time = [&](std::string_view algorithm, Collective collective) {
        return seconds(algorithm, collective, cluster, n_bytes);
      };
      const auto n = static_cast<double>(n_bytes);
      const double log_p = std::bit_width(static_cast<unsigned>(p - 1));
      const double spread = n * (p - 1) / p * beta;  // every rank sends all but its own share
      expect_close(time("ring", Collective::kAllReduce), 2 * ((p - 1) * alpha + spread));
      expect_close(time("ring", Collective::kReduceScatter), (p - 1) * alpha + spread);
      expect_close(time("ring", Collective::kAllGather), (p - 1) * alpha + spread);
      expect_close(time("direct", Collective::kAllReduce), 2 * (alpha + spread));
      expect_close(time("direct", Collective::kBroadcast), alpha + (p - 1) * n * beta);
      if (p <= 64) expect_close(time("one_shot", Collective::kAllReduce), alpha + (p - 1) * n * beta);
      expect_close(time("tree", Collective::kBroadcast), log_p * (alpha + n * beta));
      expect_close(time("dissemination", Collective::kBarrier), log_p * alpha);
      if (!std::has_single_bit(static_cast<unsigned>(p))) continue;
      expect_close(time("halving_doubling", Collective::kAllReduce), 2 * (log_p * alpha + spread));
      expect_close(time("tree", Collective::kAllReduce), 2 * log_p * (alpha + n * beta));
    }
  }
}

TEST(SimulateCluster, ChargesOverheadPerMessageSentAndReceived) {
  Cluster cluster = flat(8, 5e-6);
  cluster.message_overhead = 1e-6;
  expect_close(seconds("direct", Collective::kAllGather, cluster, 0), 7e-6 + 5e-6 + 7e-6);
}

// What folding must not change: a simulation in which every rank is its own class.
void expect_equal_when_folded(const Algorithm& algorithm, Collective collective, const Cluster& cluster,
                              bool encoded) {
  SCOPED_TRACE(fmt::format("{} on {}{}", label(algorithm, collective, cluster.n_ranks), cluster.name,
                           encoded ? ", encoded" : ""));
  FoldRequest request = request_of(algorithm, collective, cluster.n_ranks, encoded);
  const auto few = fold(cluster, request);
  request.every_rank = true;
  const auto all = fold(cluster, request);
  ASSERT_TRUE(few.ok() && all.ok()) << (few.ok() ? all : few).error().message;
  ASSERT_EQ(all->classes.size(), static_cast<size_t>(cluster.n_ranks));
  for (const ClusterCall& call : {ClusterCall{4 << 10, 0}, ClusterCall{4 << 20, 0},
                                  ClusterCall{4 << 20, 64 << 10}, ClusterCall{64 << 20, 256 << 10, 0.25}}) {
    const ClusterPrediction a = simulate(*few, call, cluster);
    const ClusterPrediction b = simulate(*all, call, cluster);
    EXPECT_NEAR(a.call.seconds, b.call.seconds, 1e-6 * b.call.seconds)
        << call.n_bytes << " bytes, segments of " << call.segment_bytes << ", " << few->classes.size()
        << " classes";
    EXPECT_EQ(a.call.bytes_on_wire_per_rank, b.call.bytes_on_wire_per_rank);
    EXPECT_EQ(a.call.n_messages, b.call.n_messages);
    EXPECT_EQ(a.limiting_level, b.limiting_level);
    for (size_t l = 0; l < a.links.size(); ++l) {
      EXPECT_NEAR(a.links[l].bytes, b.links[l].bytes, 1e-9 * b.links[l].bytes);
      EXPECT_NEAR(a.links[l].busiest_bytes, b.links[l].busiest_bytes, 1e-9 * b.links[l].busiest_bytes);
      EXPECT_EQ(a.links[l].n_links, b.links[l].n_links);
    }
    for (int r = 0; r < cluster.n_ranks; r += 5)
      EXPECT_LE(least_seconds(*request.plan_of(r), call, cluster), b.call.seconds * (1 + 1e-9))
          << "rank " << r;
  }
}

TEST(SimulateCluster, FoldedAndFullSimulationsAgreeForEveryAlgorithm) {
  const std::vector<Cluster> clusters = {
      flat(8),         flat(13),        nodes(16, 4, 1),       nodes(16, 4, 4),
      nodes(14, 4, 2), nodes(24, 8, 4), oversubscribed(16, 2), oversubscribed(12, 2)};
  for (const Cluster& cluster : clusters) {
    for_each_pair(cluster.n_ranks, [&](const Algorithm& algorithm, Collective collective) {
      expect_equal_when_folded(algorithm, collective, cluster, false);
      if (algorithm.can_encode() && collective != Collective::kBarrier)
        expect_equal_when_folded(algorithm, collective, cluster, true);
    });
  }
}

TEST(SimulateCluster, SymmetricWorldsFoldToOneNode) {
  // Rank 0 has its own share first when it sums in rank order, so its node is a class of nodes for itself.
  EXPECT_EQ(folded("direct", Collective::kAllReduce, nodes(256, 8, 8)).classes.size(), 16U);
  EXPECT_EQ(folded("ring", Collective::kAllReduce, nodes(256, 8, 1)).classes.size(), 8U);
  EXPECT_EQ(folded("ring", Collective::kAllReduce, flat(1000)).classes.size(), 1U);
}

TEST(SimulateCluster, TheRanksOfANodeShareItsNics) {
  // Every rank sends 24/32 of the vector to other nodes.
  const size_t n_bytes = 64 << 20;
  const double out = 8.0 * static_cast<double>(n_bytes) * 24 / 32;
  for (const int n_nics : {1, 2, 4, 8}) {
    const double time = seconds("direct", Collective::kAllGather, nodes(32, 8, n_nics), n_bytes) / 8;
    EXPECT_NEAR(time, out / 8 / (n_nics * 1e9), 0.05 * time) << n_nics;
  }
}

TEST(SimulateCluster, AHalfDuplexLinkCarriesBothWaysInTurn) {
  Cluster cluster = flat(2);
  const double full = seconds("direct", Collective::kAllGather, cluster, 64 << 20);
  cluster.levels[0].link.full_duplex = false;
  ASSERT_TRUE(cluster.prepare().ok());
  expect_close(seconds("direct", Collective::kAllGather, cluster, 64 << 20), 2 * full, 0.01);
}

TEST(SimulateCluster, NamesTheLinkThatLimits) {
  const ClusterPrediction p = simulate(folded("direct", Collective::kAllReduce, oversubscribed(16, 2)),
                                       {1 << 20, 0}, oversubscribed(16, 2));
  EXPECT_EQ(p.limiting_level, 2);
  EXPECT_GE(p.call.seconds, p.links[2].busiest_seconds);
  // Twice 7/8 of a vector cut in 16 leave each rank; 3/4 of all go to other leaves, and as much comes back.
  const double share = static_cast<double>(1 << 20) / 16;
  expect_close(p.links[2].busiest_bytes, 2 * 4 * 12 * 2 * share);
  expect_close(p.links[0].bytes, 16 * 2 * 2 * share);  // to the neighbour, out and in: two links
}

TEST(SimulateCluster, SegmentsOverlapWorkAndWire) {
  Cluster cluster = flat(4, 1e-6);
  cluster.device.reduce_bytes_per_s = 1e9;
  const double whole = seconds("ring", Collective::kReduceScatter, cluster, 256 << 20);
  const double cut = seconds("ring", Collective::kReduceScatter, cluster, 256 << 20, 1 << 20);
  EXPECT_LT(cut, 0.7 * whole);
}

TEST(SimulateCluster, AReceiveWithoutItsSendIsAnError) {
  const Cluster cluster = flat(4);
  const auto plan_of = request_of(**find_algorithm("ring"), Collective::kAllReduce, 4).plan_of;
  const auto broken =
      fold(cluster, {.plan_of = [&](int rank) {
             auto plan = plan_of(rank);
             if (rank == 2)
               std::erase_if(plan->steps, [](const Step& s) { return s.kind == StepKind::kSend; });
             return plan;
           }});
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code, Code::kInternal);
}

}  // namespace
}  // namespace tern
