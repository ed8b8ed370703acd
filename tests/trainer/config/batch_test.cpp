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

TEST(BatchEquation, TheErrorHoldsAllNumbers) {
  const auto batch = solve_batch({33, 4, 2}, 3);
  ASSERT_FALSE(batch.ok());
  for (const char* part : {"33", "micro_batch_size_per_gpu 4", "accumulation_steps 2", "3 ranks", "24"}) {
    EXPECT_THAT(batch.error().message, testing::HasSubstr(part));
  }
}

}  // namespace
}  // namespace tern::trainer
