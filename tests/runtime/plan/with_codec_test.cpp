#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/plan/compose.h"
#include "runtime/plan/verify.h"
#include "tests/runtime/plan/worlds.h"

namespace tern {
namespace {

Result<std::vector<Plan>> encoded(const std::vector<Plan>& dense) {
  std::vector<Plan> plans;
  for (const Plan& plan : dense) {
    TERN_ASSIGN(Plan one, with_codec(plan));
    plans.push_back(std::move(one));
  }
  return plans;
}

TEST(WithCodec, KeepsTheEncodableAlgorithmsCorrectWithIdenticalBytesOnAllRanks) {
  for (const int p : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 31, 64}) {
    for_each_pair(p, [&](const Algorithm& algorithm, Collective collective) {
      if (!algorithm.can_encode() || collective == Collective::kBarrier) return;
      for (int root = 0; root < (has_root(collective) ? p : 1); root += 3) {
        SCOPED_TRACE(label(algorithm, collective, p, root));
        const auto plans = encoded(plans_of(algorithm, collective, p, root));
        ASSERT_TRUE(plans.ok()) << plans.error().to_string();
        const Status status = verify(*plans);  // compares how every rank's output was computed
        EXPECT_TRUE(status.ok()) << status.error().to_string();
        for (const Plan& plan : *plans)
          for (const Step& step : plan.steps)
            EXPECT_TRUE(step.kind != StepKind::kSend || step.src.buffer == Buffer::kWire) << to_string(step);
      }
    });
  }
}

TEST(WithCodec, DirectSumsInRankOrderAndEncodesEachChunkOnce) {
  const int p = 5;
  const auto plans = encoded(plans_of("direct", Collective::kReduceScatter, p));
  for (const Plan& plan : *plans) {
    SCOPED_TRACE(to_string(plan));
    int n_encodes = 0;
    std::vector<int> order;  // of the ranks whose shares are added up
    int sender = -1;
    for (const Step& step : plan.steps) {
      n_encodes += step.kind == StepKind::kEncode;
      if (step.kind == StepKind::kRecv) sender = step.peer;
      if (step.kind == StepKind::kDecode || step.kind == StepKind::kDecodeAccumulate) order.push_back(sender);
      if (step.src.buffer == Buffer::kInput &&
          (step.kind == StepKind::kReduce || step.kind == StepKind::kCopy))
        order.push_back(plan.rank);
    }
    EXPECT_EQ(n_encodes, p - 1);
    ASSERT_EQ(order.size(), static_cast<size_t>(p));
    if (plan.rank == 1) std::swap(order[0], order[1]);  // a + b = b + a
    for (int r = 0; r < p; ++r) EXPECT_EQ(order[static_cast<size_t>(r)], r);
  }
}

TEST(WithCodec, NeedsNoMoreWirePlacesThanTheBusiestRound) {
  const int p = 9;
  const auto plans = encoded(plans_of("direct", Collective::kAllReduce, p));
  for (const Plan& plan : *plans) EXPECT_EQ(plan.n_wire, 2 * (p - 1)) << to_string(plan);
}

TEST(WithCodec, ForwardsWhatArrivedEncodedAsItIs) {
  for (const int p : {2, 3, 8, 11}) {
    const auto plans = encoded(plans_of("ring", Collective::kAllGather, p));
    ASSERT_TRUE(plans.ok()) << plans.error().to_string();
    const Status status = verify(*plans);
    EXPECT_TRUE(status.ok()) << status.error().to_string();
    for (const Plan& plan : *plans) {
      const auto n = std::count_if(plan.steps.begin(), plan.steps.end(),
                                   [](const Step& s) { return s.kind == StepKind::kEncode; });
      EXPECT_EQ(n, 1) << to_string(plan);
    }
  }
}

TEST(WithCodec, RefusesPlansThatWouldQuantiseSumsOfSums) {
  for (const auto& [algorithm, collective] : {std::pair("ring", Collective::kAllReduce),
                                              {"ring", Collective::kReduceScatter},
                                              {"halving_doubling", Collective::kAllReduce},
                                              {"tree", Collective::kAllReduce}}) {
    SCOPED_TRACE(fmt::format("{} {}", algorithm, name(collective)));
    const auto plans = encoded(plans_of(algorithm, collective, 4));
    ASSERT_FALSE(plans.ok());
    EXPECT_EQ(plans.error().code, Code::kUnsupported);
  }
  EXPECT_EQ(with_codec(plans_of("tree", Collective::kBarrier, 4)[0]).error().code, Code::kUnsupported);
}

TEST(WithCodec, EncodesAnewWhatChangedSinceItArrived) {
  Plan plan;
  plan.collective = Collective::kAllReduce;
  plan.n_ranks = 3;
  plan.n_rounds = 3;
  plan.steps = {{StepKind::kRecv, 1, 0, {}, {Buffer::kOutput}},
                {StepKind::kReduce, -1, 1, {Buffer::kInput}, {Buffer::kOutput}},
                {StepKind::kSend, 2, 2, {Buffer::kOutput}, {}}};
  const Plan encoded_plan = *with_codec(plan);
  const Step* encode = nullptr;
  for (const Step& step : encoded_plan.steps)
    if (step.kind == StepKind::kEncode) encode = &step;
  ASSERT_NE(encode, nullptr) << to_string(encoded_plan);
  EXPECT_EQ(encode->round, 4);
}

TEST(WithCodec, DecodesOnlyWhatTheRankKeeps) {
  // As a later stage, direct's shares lie in kOutput: those of other owners are overwritten before anybody
  // reads them.
  std::vector<Plan> dense;
  for (const Plan& plan : plans_of("direct", Collective::kAllReduce, 4)) dense.push_back(in_output(plan));
  const auto plans = encoded(dense);
  for (const Plan& plan : *plans) {
    const auto n = std::count_if(plan.steps.begin(), plan.steps.end(), [](const Step& s) {
      return s.kind == StepKind::kDecode && s.dst.buffer == Buffer::kOutput && s.round < 3;
    });
    EXPECT_LE(n, 2) << to_string(plan);  // the first share of the sum where it starts there, and the own sum
  }
}

TEST(WithCodec, RefusesAnEncodedPlan) {
  const Plan once = *with_codec(plans_of("direct", Collective::kAllReduce, 4)[0]);
  EXPECT_EQ(with_codec(once).error().code, Code::kUnsupported);
}

}  // namespace
}  // namespace tern
