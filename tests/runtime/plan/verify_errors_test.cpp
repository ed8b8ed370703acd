// What the verifier says about plans that are wrong in one way each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/plan/compose.h"
#include "runtime/plan/verify.h"
#include "tests/runtime/plan/worlds.h"

namespace tern {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::vector<Plan>& plans) {
  const Status status = verify(plans);
  return status.ok() ? "" : status.error().message;
}

Plan& step_erased(Plan& plan, size_t at) {
  plan.steps.erase(plan.steps.begin() + static_cast<std::ptrdiff_t>(at));
  return plan;
}

TEST(VerifyErrors, NameWhichRanksShareIsMissingOrDouble) {
  auto plans = plans_of("direct", Collective::kReduceScatter, 4);
  const auto& steps = plans[2].steps;
  size_t at = 0;
  while (steps[at].kind != StepKind::kReduce) ++at;
  const Step own = steps[at];
  step_erased(plans[2], at);
  EXPECT_THAT(error_of(plans), HasSubstr("rank 2 of 4: output chunk 2 lacks the contribution of rank 2"));
  plans[2].steps.insert(plans[2].steps.end(), {own, own});
  EXPECT_THAT(error_of(plans), HasSubstr("output chunk 2 holds the contribution of rank 2 once too often"));
}

TEST(VerifyErrors, NameTheStepThatWaitsForEver) {
  auto plans = plans_of("ring", Collective::kAllGather, 3);
  step_erased(plans[0], 0);
  EXPECT_THAT(error_of(plans),
              HasSubstr("rank 1 of 3, round 0, recv output[0] from rank 0: it waits for ever"));
}

TEST(VerifyErrors, ACycleOfWaitsIsCaught) {
  // Each of two ranks sends only after it has received.
  auto plans = plans_of("dissemination", Collective::kBarrier, 2);
  for (Plan& plan : plans) {
    plan.n_rounds = 2;
    std::swap(plan.steps[0], plan.steps[1]);
    plan.steps[1].round = 1;
  }
  EXPECT_THAT(error_of(plans), HasSubstr("waits for ever"));
}

TEST(VerifyErrors, AReadBeforeTheWriteIsCaught) {
  auto plans = plans_of("chain", Collective::kBroadcast, 3);
  for (Plan& plan : plans)  // the second hop in the round of the first
    for (Step& step : plan.steps) step.round = 0;
  EXPECT_THAT(error_of(plans), HasSubstr("it reads what was never written"));
}

TEST(VerifyErrors, OverwritingWhatASendStillReadsIsCaughtInPlace) {
  auto plans = plans_of("one_shot", Collective::kAllReduce, 3);
  for (Plan& plan : plans) {  // straight into the output, which in place is the input that peers are reading
    plan.steps.pop_back();
    for (Step& step : plan.steps)
      if (step.dst.buffer == Buffer::kScratch) step.dst = {Buffer::kOutput, 0};
  }
  EXPECT_THAT(error_of(plans), HasSubstr("it overwrites what a send of the same round still reads"));
}

TEST(VerifyErrors, AReceiveThatMayLandOnWhatIsStillReadIsCaught) {
  auto plans = plans_of("direct", Collective::kAllReduce, 2);
  Plan& plan =
      plans[0];  // saves its share of chunk 1 in the round in which chunk 1 is received, listed before it
  plan.n_scratch = 1;
  auto recv = plan.steps.end() - 1;
  ASSERT_EQ(recv->kind, StepKind::kRecv);
  plan.steps.insert(recv, Step{StepKind::kCopy, -1, 1, {Buffer::kInput, 1}, {Buffer::kScratch, 1}});
  EXPECT_THAT(error_of(plans),
              HasSubstr("its bytes may land while an earlier step of the round works there"));
}

TEST(VerifyErrors, AReceiveThatMayLandOnWhatTheRoundBeforeSentIsCaught) {
  // Rank 0's chunk goes to rank 1 in round 0, and its place is filled from rank 2 in round 1.
  std::vector<Plan> plans(3);
  for (int16_t rank = 0; rank < 3; ++rank) {
    Plan& plan = plans[static_cast<size_t>(rank)];
    plan.collective = Collective::kSendRecv;
    plan.algorithm = "late";
    plan.rank = rank;
    plan.n_ranks = 3;
    plan.n_rounds = 2;
    plan.out_of_place_only = rank != 0;
  }
  const Ref in{Buffer::kInput};
  const Ref out{Buffer::kOutput};
  plans[0].steps = {{StepKind::kSend, 1, 0, in, {}}, {StepKind::kRecv, 2, 1, {}, out}};
  plans[1].steps = {{StepKind::kRecv, 0, 0, {}, out}, {StepKind::kSend, 2, 1, in, {}}};
  plans[2].steps = {{StepKind::kRecv, 1, 1, {}, out}, {StepKind::kSend, 0, 1, in, {}}};
  EXPECT_THAT(error_of(plans),
              HasSubstr("rank 0 of 3, round 1, recv output[0] from rank 2: its bytes may land "
                        "while a send of the round before still reads there"));
  plans[0].out_of_place_only = true;
  EXPECT_EQ(error_of(plans), "");
}

TEST(VerifyErrors, ASumInAnotherOrderOrInSeveralPassesBreaksThePromiseOfRankOrder) {
  auto plans = plans_of("direct", Collective::kReduceScatter, 4);
  EXPECT_TRUE(verify(plans, {.rank_order = true}).ok());
  auto& steps = plans[1].steps;
  const auto swapped = plans;
  const size_t last = steps.size() - 1;
  std::swap(steps[last], steps[last - 1]);
  EXPECT_EQ(error_of(plans), "");
  EXPECT_THAT(verify(plans, {.rank_order = true}).error().message,
              HasSubstr("rank 1 of 4: output chunk 1 is not summed in rank order in one pass"));
  plans = swapped;
  for (Plan& plan : plans) plan.n_rounds = 2;
  steps[last].round = 1;  // the last share in a pass of its own
  for (Step& step : plans[3].steps)
    if (step.kind == StepKind::kSend && step.peer == 1) step.round = 1;
  std::stable_sort(plans[3].steps.begin(), plans[3].steps.end(),
                   [](const Step& a, const Step& b) { return a.round < b.round; });
  EXPECT_EQ(error_of(plans), "");
  EXPECT_THAT(verify(plans, {.rank_order = true}).error().message, HasSubstr("in one pass"));
}

TEST(VerifyErrors, TheWrongBlockOfAnAllToAllIsCaught) {
  auto plans = plans_of("direct", Collective::kAllToAll, 4);
  for (Step& step : plans[2].steps)
    if (step.kind == StepKind::kSend && step.peer == 3) step.src.chunk = 1;
  EXPECT_THAT(error_of(plans), HasSubstr("rank 3 of 4: output chunk 2 is not what rank 2 has for it"));
}

TEST(VerifyErrors, ABlockWhoseSizeARankCannotKnowIsCaught) {
  const Algorithm& direct = *find_algorithm("direct").value();
  const auto made = [&](bool uneven) {
    auto plans = plans_of(direct, TestWorld{Collective::kAllToAll, 3, 0, uneven, InPlace::kAll});
    for (Step& step : plans[0].steps)
      for (Ref* ref : {&step.src, &step.dst})
        if (ref->buffer == Buffer::kScratch) ref->chunk = 0;
    return plans;
  };
  EXPECT_EQ(error_of(made(false)), "");
  EXPECT_THAT(error_of(made(true)), HasSubstr("the place does not hold the block of rank 0"));
}

TEST(VerifyErrors, AnOutputThatARankDoesNotHaveIsCaught) {
  auto plans = plans_of("direct", Collective::kReduce, 3, 1);
  for (Step& step : plans[2].steps)
    if (step.dst.buffer == Buffer::kScratch) step.dst = {Buffer::kOutput, step.dst.chunk};
  EXPECT_THAT(error_of(plans), HasSubstr("the rank has no such chunks in that buffer"));
}

TEST(VerifyErrors, ScratchRunsOfChunksThatAreNotNeighboursAreCaught) {
  auto plans = plans_of("halving_doubling", Collective::kReduceScatter, 8);
  ASSERT_EQ(error_of(plans), "");
  Plan& plan = plans[0];
  plan.n_scratch += 1;
  plan.steps.insert(plan.steps.begin(),
                    Step{StepKind::kCopy, -1, 0, {Buffer::kInput, 5}, {Buffer::kScratch, 5, 1, 1}});
  EXPECT_THAT(error_of(plans), HasSubstr("its chunks and those around it in scratch are not neighbours"));
}

TEST(VerifyErrors, DifferentSumOrdersOnDifferentRanksAreCaught) {
  auto plans = plans_of("one_shot", Collective::kAllReduce, 3);
  auto& steps = plans[2].steps;
  for (size_t i = 0; i + 1 < steps.size(); ++i)
    if (steps[i].kind == StepKind::kRecvReduce && steps[i + 1].kind == StepKind::kReduce)
      std::swap(steps[i], steps[i + 1]);
  EXPECT_THAT(error_of(plans),
              HasSubstr("rank 2 of 3: output chunk 0 is computed in another order than on rank 0"));
}

TEST(VerifyErrors, AnOwnerThatKeepsItsUndecodedSumIsCaught) {
  std::vector<Plan> plans;
  for (const Plan& plan : plans_of("direct", Collective::kAllReduce, 3)) plans.push_back(*with_codec(plan));
  auto& steps = plans[1].steps;
  std::erase_if(steps, [](const Step& s) { return s.kind == StepKind::kDecode && s.round == 2; });
  EXPECT_THAT(error_of(plans), HasSubstr("is computed in another order than on rank 0"));
}

TEST(VerifyErrors, AMessageEncodedAtOneEndOnlyIsCaught) {
  std::vector<Plan> plans;
  for (const Plan& plan : plans_of("direct", Collective::kBroadcast, 3)) plans.push_back(*with_codec(plan));
  Step& recv = plans[2].steps[0];
  ASSERT_EQ(recv.kind, StepKind::kRecv);
  recv.dst = {Buffer::kOutput};
  EXPECT_THAT(error_of(plans),
              HasSubstr("recv output[0] from rank 0: only one end is encoded: send wire 0[0]"));
}

TEST(VerifyErrors, RunsOfChunksThatThePlanDoesNotAnnounceAreCaught) {
  auto plans = plans_of("halving_doubling", Collective::kAllReduce, 4);
  for (Plan& plan : plans) plan.moves_runs = false;
  EXPECT_THAT(error_of(plans), HasSubstr("it works on several chunks, which the plan does not announce"));
  plans = plans_of("halving_doubling", Collective::kAllReduce, 4);
  plans[3].moves_runs = false;
  EXPECT_THAT(error_of(plans), HasSubstr("does not go with that of rank 0"));
}

TEST(VerifyErrors, APlaceThatHoldsAnotherChunkIsCaught) {
  auto plans = plans_of("ring", Collective::kReduceScatter, 5);
  for (Step& step : plans[0].steps)
    if (step.kind == StepKind::kSend && step.round == 2) step.src.slot = 0;
  EXPECT_THAT(error_of(plans), HasSubstr("round 2, send scratch 0[2] to rank 1: the place holds chunk 3"));
}

TEST(VerifyErrors, SumsOfSumsQuantisedAtEveryHopAreCaught) {
  // A chain 0 -> 1 -> 2 that encodes each partial sum; each rank adds its own share to what came.
  std::vector<Plan> plans(3);
  const Ref wire{Buffer::kWire};
  const Ref sum{Buffer::kOutput};
  for (int16_t rank = 0; rank < 3; ++rank) {
    Plan& plan = plans[static_cast<size_t>(rank)];
    plan.collective = Collective::kAllReduce;
    plan.algorithm = "chain";
    plan.rank = rank;
    plan.n_ranks = 3;
    plan.n_wire = 1;
    plan.n_rounds = 6;
    plan.encoded = true;
    const auto before = static_cast<int16_t>(rank - 1);
    const auto after = static_cast<int16_t>(rank + 1);
    const auto now = static_cast<uint16_t>(2 * rank);
    const auto at = [](int round) { return static_cast<uint16_t>(round); };
    if (rank > 0) plan.steps.push_back({StepKind::kRecv, before, at(now - 1), {}, wire});
    if (rank > 0) plan.steps.push_back({StepKind::kDecode, -1, at(now - 1), wire, sum});
    plan.steps.push_back({rank > 0 ? StepKind::kReduce : StepKind::kCopy, -1, now, {}, sum});
    if (rank < 2) plan.steps.push_back({StepKind::kEncode, -1, now, sum, wire});
    if (rank < 2) plan.steps.push_back({StepKind::kSend, after, at(now + 1), wire, {}});
  }
  EXPECT_THAT(
      error_of(plans),
      HasSubstr("rank 2 of 3, round 4, reduce input[0] -> output[0]: it adds to what was quantised twice"));
}

TEST(VerifyErrors, ABarrierThatARankMayLeaveTooEarlyIsCaught) {
  auto plans = plans_of("dissemination", Collective::kBarrier, 5);
  for (Plan& plan : plans) {
    std::erase_if(plan.steps, [](const Step& s) { return s.round == 2; });
    plan.n_rounds = 2;
  }
  EXPECT_THAT(error_of(plans), HasSubstr("it may leave before rank"));
}

TEST(VerifyErrors, PlansOfDifferentCollectivesAreCaught) {
  auto plans = plans_of("ring", Collective::kAllReduce, 3);
  plans[1] = plans_of("direct", Collective::kAllReduce, 3)[1];
  EXPECT_THAT(error_of(plans), HasSubstr("the plan at place 1 (all_reduce by direct"));
  EXPECT_THAT(error_of({}), HasSubstr("no plans"));
}

}  // namespace
}  // namespace tern
