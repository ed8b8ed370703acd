#include "runtime/plan/compose.h"

#include <gtest/gtest.h>

#include "runtime/plan/verify.h"
#include "tests/runtime/plan/worlds.h"

namespace tern {
namespace {

TEST(Compose, ReduceScatterThenAllGatherIsAnAllReduce) {
  for (const std::string_view scatter : {"ring", "direct", "halving_doubling"}) {
    for (const std::string_view gather : {"ring", "direct", "halving_doubling"}) {
      for (int p = 2; p <= 9; ++p) {
        SCOPED_TRACE(fmt::format("{} ; {}, p = {}", scatter, gather, p));
        const auto first = plans_of(scatter, Collective::kReduceScatter, p);
        const auto second = plans_of(gather, Collective::kAllGather, p);
        std::vector<Plan> plans;
        for (size_t r = 0; r < first.size(); ++r) {
          plans.push_back(sequence(first[r], in_output(second[r])).value());
          plans.back().collective = Collective::kAllReduce;
        }
        const Status status = verify(plans);
        EXPECT_TRUE(status.ok()) << status.error().to_string();
      }
    }
  }
}

TEST(Compose, RefinedPlansAreStillCorrect) {
  for (int p = 1; p <= 9; ++p) {
    for_each_pair(p, [&](const Algorithm& algorithm, Collective collective) {
      if (collective == Collective::kAllToAll) return;  // has one chunk per rank
      SCOPED_TRACE(label(algorithm, collective, p));
      std::vector<Plan> plans;
      for (const Plan& plan : plans_of(algorithm, collective, p)) plans.push_back(refine(plan, 3));
      const Status status = verify(plans);
      EXPECT_TRUE(status.ok()) << status.error().to_string();
    });
  }
}

TEST(Compose, SequenceRefusesPlansOfDifferentRanksWorldsAndCuts) {
  const Plan a = plans_of("ring", Collective::kReduceScatter, 4)[1];
  for (const Plan& b :
       {plans_of("ring", Collective::kAllGather, 4)[2], plans_of("ring", Collective::kAllGather, 5)[1],
        plans_of("tree", Collective::kAllReduce, 4)[1]}) {
    const auto both = sequence(a, b);
    ASSERT_FALSE(both.ok());
    EXPECT_EQ(both.error().code, Code::kInvalidArgument);
    EXPECT_NE(both.error().message.find("rank 1 of 4 with 4 chunks"), std::string::npos)
        << both.error().message;
  }
}

TEST(Compose, OnGroupRefusesGroupsOfAnotherSizeAndForeignMembers) {
  const Plan plan = plans_of("ring", Collective::kAllGather, 2)[0];
  const std::vector<int> three = {0, 1, 2};
  const std::vector<int> foreign = {0, 8};
  EXPECT_EQ(on_group(plan, three, 8).error().code, Code::kInvalidArgument);
  EXPECT_EQ(on_group(plan, foreign, 8).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace tern
