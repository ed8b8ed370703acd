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

TEST(Program, SharesThatArriveEncodedAndTheOwnOneBecomeOneSumInListedOrder) {
  const auto wire = [](int16_t slot) { return Ref{.buffer = Buffer::kWire, .chunk = 1, .slot = slot}; };
  Plan plan = plan_of({{.kind = StepKind::kRecv, .peer = 0, .dst = wire(0)},
                       {.kind = StepKind::kDecode, .src = wire(0), .dst = kOut},
                       {.kind = StepKind::kReduce, .src = kIn, .dst = kOut},
                       {.kind = StepKind::kRecv, .peer = 2, .dst = wire(1)},
                       {.kind = StepKind::kDecodeAccumulate, .src = wire(1), .dst = kOut}});
  plan.n_wire = 2;
  const Program program = compile(plan);
  const Round& round = program.rounds.at(0);
  ASSERT_EQ(round.work.size(), 1U);
  EXPECT_EQ(round.work[0].kind, ActionKind::kDecode);
  ASSERT_EQ(round.recvs.size(), 2U);
  ASSERT_EQ(round.work[0].n_operands, 3);
  EXPECT_EQ(round.recvs[static_cast<size_t>(program.operands[0].recv_idx)].peer, 0);
  EXPECT_EQ(program.operands[1].local, kIn);
  EXPECT_EQ(program.operands[1].recv_idx, -1);
  EXPECT_EQ(program.operands[1].wire, -1);
  EXPECT_EQ(round.recvs[static_cast<size_t>(program.operands[2].recv_idx)].peer, 2);
}

TEST(Program, WhatIsForwardedLaterIsKeptAndDecodedFromWhereItIsKept) {
  const Ref wire{.buffer = Buffer::kWire, .chunk = 1};
  Plan plan = plan_of({{.kind = StepKind::kRecv, .peer = 0, .dst = wire},
                       {.kind = StepKind::kDecode, .src = wire, .dst = kOut},
                       {.kind = StepKind::kSend, .peer = 2, .round = 1, .src = wire}});
  plan.n_wire = 1;
  plan.n_rounds = 2;
  const Program program = compile(plan);
  const Round& round = program.rounds.at(0);
  ASSERT_EQ(round.work.size(), 2U);
  EXPECT_EQ(round.work[0].kind, ActionKind::kKeepWire);
  EXPECT_EQ(round.work[0].dst.chunk, 1) << "its header says which elements it holds";
  EXPECT_EQ(round.work[1].kind, ActionKind::kDecode);
  EXPECT_EQ(program.operands.at(0).recv_idx, -1) << "the receive was released when it was kept";
  EXPECT_EQ(program.operands.at(0).wire, 0);
}

TEST(Program, PlansThatMoveRunsOfFixedOwnersMustStayWhole) {
  const auto* algorithm = *find_algorithm("halving_doubling");
  EXPECT_TRUE(must_stay_whole(algorithm->build({.collective = Collective::kReduceScatter, .n_ranks = 8})));
  EXPECT_FALSE(must_stay_whole(algorithm->build({.collective = Collective::kAllReduce, .n_ranks = 8})));
}

}  // namespace
}  // namespace tern
