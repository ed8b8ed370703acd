#include "trainer/config/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace tern::trainer {
namespace {

struct Case {
  BatchRequest request;
  int ranks;
  std::optional<Batch> expected;
};

constexpr std::nullopt_t kNone = std::nullopt;

TEST(BatchEquation, EveryCombinationGivesWhatDeepSpeedGives) {
  const std::array<Case, 14> cases = {{
      {{32, 4, 2}, 4, Batch{32, 4, 2}},
      {{32, 4, kNone}, 4, Batch{32, 4, 2}},
      {{32, kNone, 2}, 4, Batch{32, 4, 2}},
      {{kNone, 4, 2}, 4, Batch{32, 4, 2}},
      {{32, kNone, kNone}, 4, Batch{32, 8, 1}},
      {{kNone, 4, kNone}, 4, Batch{16, 4, 1}},
      {{32, 4, 3}, 4, kNone},
      {{33, 4, kNone}, 4, kNone},
      {{32, kNone, 3}, 4, kNone},
      {{30, kNone, kNone}, 4, kNone},
      {{2, kNone, kNone}, 4, kNone},
      {{4, 8, kNone}, 1, kNone},
      {{kNone, kNone, 2}, 4, kNone},
      {{kNone, kNone, kNone}, 4, kNone},
  }};
  for (size_t idx = 0; idx < cases.size(); ++idx) {
    const auto batch = solve_batch(cases[idx].request, cases[idx].ranks);
    ASSERT_EQ(batch.ok(), cases[idx].expected.has_value()) << "case " << idx;
    if (!batch.ok()) continue;
    EXPECT_EQ(*batch, *cases[idx].expected) << "case " << idx;
  }
}

TEST(BatchEquation, TheErrorIsTheEquationAndWhatWouldHold) {
  const auto says = [](const BatchRequest& request, int n_ranks, const char* words) {
    const auto batch = solve_batch(request, n_ranks);
    ASSERT_FALSE(batch.ok());
    EXPECT_THAT(batch.error().message, testing::EndsWith(words));
  };
  says({33, 4, 2}, 3,
       "does not hold: train_micro_batch_size_per_gpu 4 x gradient_accumulation_steps 2 x 3 ranks makes 24, "
       "but "
       "deepspeed.train_batch_size is 33");
  says({33, 4, kNone}, 4,
       "train_batch_size 33 is no multiple of train_micro_batch_size_per_gpu 4 x 4 ranks = 16; the nearest "
       "that is: "
       "32 or 48");
  says({30, kNone, kNone}, 4, "train_batch_size 30 is no multiple of 4 ranks; the nearest that is: 28 or 32");
  says({2, kNone, 3}, 4,
       "train_batch_size 2 is no multiple of gradient_accumulation_steps 3 x 4 ranks = 12; the nearest that "
       "is: 12");
}

}  // namespace
}  // namespace tern::trainer
