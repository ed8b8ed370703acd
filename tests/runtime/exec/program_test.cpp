#include "runtime/exec/program.h"

#include <gtest/gtest.h>

#include "runtime/plan/registry.h"

namespace tern {
namespace {

constexpr Ref kIn{.buffer = Buffer::kInput, .chunk = 1};
constexpr Ref kOut{.buffer = Buffer::kOutput, .chunk = 1};

Plan plan_of(std::vector<Step> steps) {
  Plan plan;
  plan.collective = Collective::kAllReduce;
  plan.n_ranks = 4;
  plan.n_chunks = 4;
  plan.n_rounds = 1;
  plan.steps = std::move(steps);
  return plan;
}

TEST(Program, OneDestinationsReceivesAndReductionsBecomeOneOperationInListedOrder) {
  const Program program = compile(plan_of({{.kind = StepKind::kRecv, .peer = 0, .dst = kOut},
                                           {.kind = StepKind::kReduce, .src = kIn, .dst = kOut},
                                           {.kind = StepKind::kRecvReduce, .peer = 2, .dst = kOut},
                                           {.kind = StepKind::kRecvReduce, .peer = 3, .dst = kOut}}));
  const Round& round = program.rounds.at(0);
  ASSERT_EQ(round.work.size(), 1U);
  ASSERT_EQ(round.recvs.size(), 3U);
  ASSERT_EQ(round.work[0].n_operands, 4);
  EXPECT_EQ(round.recvs[static_cast<size_t>(program.operands[0].recv_idx)].peer, 0);
  EXPECT_EQ(program.operands[1].recv_idx, -1);
  EXPECT_EQ(program.operands[1].local, kIn);
  EXPECT_EQ(round.recvs[static_cast<size_t>(program.operands[3].recv_idx)].peer, 3);
  EXPECT_FALSE(round.recvs[0].lands) << "its bytes only pass by";
}

TEST(Program, AReductionThatDoesNotOverwriteReadsItsDestinationFirst) {
  const Program program = compile(plan_of({{.kind = StepKind::kRecvReduce, .peer = 2, .dst = kOut}}));
  ASSERT_EQ(program.rounds[0].work[0].n_operands, 2);
  EXPECT_EQ(program.operands[0].local, kOut);
}

TEST(Program, ASecondOverwriteOfTheSameDestinationIsAnOperationOfItsOwn) {
  const Program program = compile(plan_of({{.kind = StepKind::kRecv, .peer = 2, .dst = kOut},
                                           {.kind = StepKind::kCopy, .src = kIn, .dst = kOut}}));
  EXPECT_EQ(program.rounds[0].work.size(), 2U);
  EXPECT_TRUE(program.rounds[0].recvs[0].lands) << "a plain receive goes straight to its place";
}

TEST(Program, PlansThatMoveRunsOfFixedOwnersMustStayWhole) {
  const auto* algorithm = *find_algorithm("halving_doubling");
  EXPECT_TRUE(must_stay_whole(algorithm->build({.collective = Collective::kReduceScatter, .n_ranks = 8})));
  EXPECT_FALSE(must_stay_whole(algorithm->build({.collective = Collective::kAllReduce, .n_ranks = 8})));
}

}  // namespace
}  // namespace tern
