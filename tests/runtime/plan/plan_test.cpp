#include "runtime/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/compose.h"
#include "tests/runtime/plan/worlds.h"

namespace tern {
namespace {

TEST(Plan, ChunksShareAVectorEvenlyWithoutGapsOrOverflow) {
  for (const size_t n : {size_t{0}, size_t{1}, size_t{7}, size_t{1000}, ~size_t{0} - 3}) {
    for (const int C : {1, 2, 3, 7, 1024}) {
      EXPECT_EQ(chunk_begin(n, 0, C), 0u);
      EXPECT_EQ(chunk_begin(n, C, C), n);
      for (int c = 0; c < C; ++c) {
        const size_t size = chunk_begin(n, c + 1, C) - chunk_begin(n, c, C);
        EXPECT_TRUE(size == n / static_cast<size_t>(C) || size == n / static_cast<size_t>(C) + 1)
            << n << " " << C;
      }
    }
  }
}

TEST(Plan, ARefinedCutHasTheSameBorders) {
  for (size_t n = 0; n < 200; ++n)
    for (int c = 0; c <= 5; ++c) EXPECT_EQ(chunk_begin(n, c * 3, 15), chunk_begin(n, c, 5));
}

TEST(Plan, NamesAreReadBack) {
  for (int c = 0; c < kNumCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    EXPECT_EQ(*parse_collective(name(collective)), collective);
  }
  const auto wrong = parse_collective("allgather");
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().message, ::testing::HasSubstr("did you mean \"all_gather\"?"));
}

TEST(Plan, IsPrintedStepByStep) {
  EXPECT_EQ(to_string(plans_of("ring", Collective::kReduceScatter, 3)[1]),
            "reduce_scatter by ring, rank 1 of 3: 2 rounds, 3 chunks, 1 scratch\n"
            "  round 0\n"
            "    send input[0] to rank 2\n"
            "    recv scratch 0[2] from rank 0\n"
            "    reduce input[2] -> scratch 0[2]\n"
            "  round 1\n"
            "    send scratch 0[2] to rank 2\n"
            "    recv output[1] from rank 0\n"
            "    reduce input[1] -> output[1]\n");
  EXPECT_EQ(to_string(*with_codec(plans_of("direct", Collective::kBroadcast, 2, 1)[1])),
            "broadcast by direct, rank 1 of 2: 2 rounds, 1 chunks, root 1, 1 wire\n"
            "  round 0\n"
            "    encode input[0] -> wire 0[0]\n"
            "  round 1\n"
            "    send wire 0[0] to rank 0\n"
            "    decode wire 0[0] -> output[0]\n");
  EXPECT_THAT(to_string(plans_of("halving_doubling", Collective::kAllReduce, 4)[0]),
              ::testing::HasSubstr("copy input[0..1] -> output[0..1]"));
  EXPECT_THAT(to_string(plans_of("one_shot", Collective::kBarrier, 2)[0]),
              ::testing::HasSubstr("send nothing to rank 1"));
}

TEST(Plan, AReductionEndsWhereTheDestinationTheRoundOrTheKindChanges) {
  const Ref a{Buffer::kOutput, 0};
  const Ref b{Buffer::kOutput, 1};
  const std::vector<Step> steps = {
      {StepKind::kRecv, 1, 0, {}, a},       {StepKind::kReduce, -1, 0, a, a},
      {StepKind::kRecvReduce, 2, 0, {}, a}, {StepKind::kRecvReduce, 2, 0, {}, b},
      {StepKind::kRecv, 3, 0, {}, b},       {StepKind::kRecvReduce, 2, 1, {}, b},
      {StepKind::kSend, 2, 1, b, {}},
  };
  EXPECT_EQ(reduction_end(steps, 0), 3u);
  EXPECT_EQ(reduction_end(steps, 3), 4u);
  EXPECT_EQ(reduction_end(steps, 4), 5u);
  EXPECT_EQ(reduction_end(steps, 5), 6u);
  EXPECT_EQ(reduction_end(steps, 6), 7u);
}

TEST(Plan, InputAndOutputAreTheSameMemoryOnlyInPlace) {
  const Ref in{Buffer::kInput, 2};
  const Ref out{Buffer::kOutput, 2};
  EXPECT_TRUE(same_memory(in, out, true));
  EXPECT_FALSE(same_memory(in, out, false));
  EXPECT_TRUE(same_memory(in, in, false));
  EXPECT_FALSE(same_memory(in, {Buffer::kOutput, 1}, true));
  EXPECT_FALSE(same_memory(in, {Buffer::kScratch, 2}, true));
}

}  // namespace
}  // namespace tern
