#include "runtime/plan/simulate.h"

#include <gtest/gtest.h>

#include "runtime/plan/compose.h"
#include "tests/runtime/plan/worlds.h"

namespace tern {
namespace {

constexpr Link kNetwork{20e-6, 1e-9};

CostModel network(Link link = kNetwork) {
  CostModel model;
  model.link = [link](int, int) { return link; };
  return model;
}

/// Ranks of one node in shared memory: the receiver's core reads.
CostModel shared_memory(int cores) {
  CostModel model;
  model.link = [](int, int) { return Link{0.5e-6, 0.1e-9, true}; };
  model.node_of = [](int) { return 0; };
  model.cores_per_node = cores;
  model.copy_beta = 0.1e-9;
  model.reduce_beta = 0.15e-9;
  return model;
}

double seconds(std::string_view algorithm, Collective collective, int p, size_t n_bytes,
               const CostModel& model) {
  return simulate(plans_of(algorithm, collective, p), {n_bytes, 0, 1, true}, model).seconds;
}

void expect_close(double got, double want, double tolerance = 0.01) {
  EXPECT_NEAR(got, want, want * tolerance);
}

TEST(Simulate, AgreesWithTheClosedFormsWhenReductionIsFree) {
  const auto [alpha, beta, reads] = kNetwork;
  for (const int p : {2, 3, 4, 7, 8, 16, 33, 64}) {
    for (const size_t n_bytes : {size_t{1} << 10, size_t{1} << 20, size_t{1} << 26}) {
      SCOPED_TRACE(fmt::format("p = {}, {} bytes", p, n_bytes));
      const auto n = static_cast<double>(n_bytes);
      const double share = alpha + n / p * beta;
      const double whole = alpha + n * beta;
      const int log_p = [&] {
        int k = 0;
        while ((1 << k) < p) ++k;
        return k;
      }();
      expect_close(seconds("ring", Collective::kAllReduce, p, n_bytes, network()), 2 * (p - 1) * share);
      expect_close(seconds("ring", Collective::kReduceScatter, p, n_bytes, network()), (p - 1) * share);
      expect_close(seconds("ring", Collective::kAllGather, p, n_bytes, network()), (p - 1) * share);
      expect_close(seconds("chain", Collective::kBroadcast, p, n_bytes, network()), (p - 1) * whole);
      expect_close(seconds("direct", Collective::kAllReduce, p, n_bytes, network()), 2 * (p - 1) * share);
      expect_close(seconds("direct", Collective::kAllGather, p, n_bytes, network()), (p - 1) * share);
      expect_close(seconds("direct", Collective::kBroadcast, p, n_bytes, network()), (p - 1) * whole);
      expect_close(seconds("one_shot", Collective::kAllReduce, p, n_bytes, network()), (p - 1) * whole);
      expect_close(seconds("tree", Collective::kBroadcast, p, n_bytes, network()), log_p * whole);
      expect_close(seconds("dissemination", Collective::kBarrier, p, n_bytes, network()), log_p * alpha);
      if ((p & (p - 1)) == 0) {
        const double halving = log_p * alpha + n * (p - 1) / p * beta;
        expect_close(seconds("halving_doubling", Collective::kAllReduce, p, n_bytes, network()), 2 * halving);
        expect_close(seconds("tree", Collective::kAllReduce, p, n_bytes, network()), 2 * log_p * whole);
      }
    }
  }
}

TEST(Simulate, MessagesThatMeetAtAReceiverTakeTurns) {
  // Rank 0 gets chunk 0 from ranks 1 and 2, then those two exchange the rest.
  const size_t n_bytes = 3000;
  const double message = kNetwork.alpha + 1000 * kNetwork.beta;
  expect_close(seconds("halving_doubling", Collective::kReduceScatter, 3, n_bytes, network()), 3 * message);
}

TEST(Simulate, PipelinesSegmentsThroughAChain) {
  const int p = 8;
  const size_t n_bytes = 64 << 20;
  const size_t segment = 1 << 20;
  const double n_segments = 64;
  const auto plans = plans_of("chain", Collective::kBroadcast, p);
  const double piece = kNetwork.alpha + static_cast<double>(segment) * kNetwork.beta;
  expect_close(simulate(plans, {n_bytes, segment}, network()).seconds, (p - 2 + n_segments) * piece);
}

TEST(Simulate, ManySegmentsTakeAsLongAsTheirSteadyStateSays) {
  const int p = 8;
  const auto plans = plans_of("chain", Collective::kBroadcast, p);
  const size_t segment = 16 << 10;
  const double piece = kNetwork.alpha + static_cast<double>(segment) * kNetwork.beta;
  for (const size_t n_segments : {20, 39, 40, 4096})
    expect_close(simulate(plans, {n_segments * segment, segment}, network()).seconds,
                 (p - 2 + static_cast<double>(n_segments)) * piece);
  // Work of receivers who share cores: half as many cores, twice the time.
  const auto direct = plans_of("direct", Collective::kAllReduce, 8);
  const RunShape many{size_t{256} << 20, 64 << 10, 1, true};
  expect_close(simulate(direct, many, shared_memory(2)).seconds,
               2 * simulate(direct, many, shared_memory(4)).seconds, 0.02);
}

TEST(Simulate, OverlapsReductionOfOneSegmentWithTheWireOfTheNext) {
  CostModel model = network({1e-6, 1e-9});
  model.reduce_beta = 1e-9;  // as slow as the wire
  const auto plans = plans_of("ring", Collective::kReduceScatter, 2);
  const size_t n_bytes = 128 << 20;
  const double whole = simulate(plans, {n_bytes, 0}, model).seconds;
  const double cut = simulate(plans, {n_bytes, 1 << 20}, model).seconds;
  EXPECT_LE(cut, whole * 1.02);
}

TEST(Simulate, CountsBytesAndMessagesOfTheBusiestRank) {
  const size_t n_bytes = 4 << 20;
  const auto ring = simulate(plans_of("ring", Collective::kAllReduce, 4), {n_bytes, 256 << 10}, network());
  EXPECT_EQ(ring.bytes_on_wire_per_rank, n_bytes * 6 / 4);
  EXPECT_EQ(ring.n_messages, 6 * 4);
  const auto direct = simulate(plans_of("direct", Collective::kBroadcast, 4), {n_bytes, 0}, network());
  EXPECT_EQ(direct.bytes_on_wire_per_rank, n_bytes * 3);
}

TEST(Simulate, PricesEncodedMessagesByTheirWireBytes) {
  CostModel model = network({0, 1e-9});
  model.wire_ratio = 0.25;
  std::vector<Plan> plans;
  for (const Plan& plan : plans_of("direct", Collective::kAllReduce, 4)) plans.push_back(*with_codec(plan));
  const size_t n_bytes = 4 << 20;
  const auto free_codec = simulate(plans, {n_bytes, 0}, model);
  EXPECT_EQ(free_codec.bytes_on_wire_per_rank, n_bytes * 6 / 4 / 4);
  expect_close(free_codec.seconds, static_cast<double>(n_bytes) * 6 / 4 / 4 * 1e-9);
  model.encode_beta = 2e-9;
  model.decode_beta = 3e-9;
  // Encoded: 3 shares of a quarter, then the sum; decoded: 3 shares, the own sum, 3 shares.
  const double work = static_cast<double>(n_bytes) / 4 * (4 * 2e-9 + 7 * 3e-9);
  EXPECT_NEAR(simulate(plans, {n_bytes, 0}, model).seconds - work, free_codec.seconds, free_codec.seconds);
}

TEST(Simulate, SharedMemoryIsWorkOfTheReceiverSoTheRootIsNotABottleneck) {
  const size_t n_bytes = 1 << 20;
  const double one = 0.5e-6 + static_cast<double>(n_bytes) * 0.1e-9;
  expect_close(seconds("direct", Collective::kBroadcast, 8, n_bytes, shared_memory(8)), one);
  expect_close(seconds("direct", Collective::kBroadcast, 9, n_bytes, shared_memory(2)), 4 * one);
}

TEST(Simulate, RanksBeyondTheCoresTakeTurns) {
  const size_t n_bytes = 16 << 20;
  const double enough = seconds("direct", Collective::kAllReduce, 4, n_bytes, shared_memory(4));
  const double half = seconds("direct", Collective::kAllReduce, 4, n_bytes, shared_memory(2));
  expect_close(half, 2 * enough, 0.05);
}

TEST(Simulate, ReadsEachOperandOfAReductionOnceAndWritesTheSumOnce) {
  CostModel model = network({0, 0});
  model.copy_beta = 2e-9;    // a read and a write
  model.reduce_beta = 3e-9;  // two reads and a write
  const size_t n_bytes = 4 << 20;
  const auto share = static_cast<double>(n_bytes) / 4;
  expect_close(seconds("direct", Collective::kReduceScatter, 4, n_bytes, model), share * (4 + 1) * 1e-9);
  expect_close(seconds("ring", Collective::kReduceScatter, 4, n_bytes, model), share * 3 * 3e-9);
}

TEST(Simulate, WorkOnPiecesLargerThanTheCacheCostsMoreSoSegmentsPay) {
  CostModel model = shared_memory(4);
  model.cache_bytes = 1 << 20;
  const auto plans = plans_of("direct", Collective::kAllReduce, 4);
  const RunShape whole{size_t{64} << 20, 0, 1, true};
  const RunShape cut{size_t{64} << 20, 512 << 10, 1, true};
  const double near = simulate(plans, whole, model).seconds;
  model.far = 2;
  EXPECT_GT(simulate(plans, whole, model).seconds, 1.9 * near);
  EXPECT_LT(simulate(plans, cut, model).seconds, 1.1 * near);
}

TEST(Simulate, ChargesTheExecutorsOverheadPerRoundAndSegment) {
  CostModel model = network({0, 0});
  model.round_overhead = 1e-6;
  const auto plans = plans_of("ring", Collective::kAllReduce, 4);
  expect_close(simulate(plans, {4 << 20, 0}, model).seconds, 6e-6);
  expect_close(simulate(plans, {4 << 20, 256 << 10}, model).seconds, 6e-6 * 4);
}

TEST(Simulate, TakesNoLessTimeForMoreBytes) {
  for (const CostModel& model : {network(), shared_memory(2), shared_memory(64)}) {
    for (const int p : {1, 2, 3, 4, 6, 9, 16}) {
      for_each_pair(p, [&](const Algorithm& algorithm, Collective collective) {
        SCOPED_TRACE(label(algorithm, collective, p));
        const auto plans = plans_of(algorithm, collective, p);
        double before = 0;
        for (size_t n_bytes = 0; n_bytes <= (16 << 20); n_bytes = n_bytes == 0 ? 1024 : n_bytes * 2) {
          const double now = simulate(plans, {n_bytes, 0}, model).seconds;
          EXPECT_GE(now, before * (1 - 1e-9)) << n_bytes << " bytes";
          before = now;
        }
      });
    }
  }
}

TEST(Simulate, NeverPredictsLessThanTheBusiestPortOrCoreNeeds) {
  for (const CostModel& model : {network(), shared_memory(2), shared_memory(64)}) {
    for_each_pair(6, [&](const Algorithm& algorithm, Collective collective) {
      SCOPED_TRACE(label(algorithm, collective, 6));
      const auto plans = plans_of(algorithm, collective, 6);
      for (const size_t segment : {0, 1 << 16}) {
        const RunShape shape{1 << 22, segment};
        EXPECT_LE(least_seconds(plans, shape, model), simulate(plans, shape, model).seconds);
      }
    });
  }
  const auto ring = plans_of("ring", Collective::kAllGather, 6);  // never waits
  expect_close(least_seconds(ring, {6 << 20, 0}, network()), simulate(ring, {6 << 20, 0}, network()).seconds);
}

TEST(Simulate, IsTheSameFromRunToRun) {
  const auto plans = plans_of("halving_doubling", Collective::kAllReduce, 11);
  const auto run = [&] { return simulate(plans, {1 << 22, 1 << 16}, shared_memory(3)).seconds; };
  EXPECT_EQ(run(), run());
}

TEST(Simulate, UsesEachOrderedPairsOwnLink) {
  CostModel model;
  model.link = [](int from, int to) { return from == 2 && to == 3 ? Link{1, 0} : Link{1e-6, 0}; };
  EXPECT_GE(seconds("ring", Collective::kAllReduce, 4, 1024, model), 1.0);
  EXPECT_LT(seconds("tree", Collective::kBroadcast, 2, 1024, model), 1e-3);
}

}  // namespace
}  // namespace tern
