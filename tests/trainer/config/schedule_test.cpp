#include "trainer/config/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tern::trainer {
namespace {

Schedule warmup(Schedule::Kind kind, bool linear, int64_t steps) {
  Schedule schedule;
  schedule.kind = kind;
  schedule.linear_warmup = linear;
  schedule.warmup_steps = steps;
  schedule.total_steps = 110;
  schedule.min_lr = 0.1;
  schedule.max_lr = 1.1;
  schedule.base_lr = 2.0;
  return schedule;
}

TEST(Schedule, LogarithmicWarmUpFollowsItsFormulaAndThenStays) {
  const Schedule schedule = warmup(Schedule::Kind::kWarmup, false, 10);
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(4), 0.1 + std::log(5.0) / std::log(10.0));
  EXPECT_DOUBLE_EQ(schedule.at(10), 1.1);
  EXPECT_DOUBLE_EQ(schedule.at(1000), 1.1);
}

TEST(Schedule, LinearWarmUpAndDecayReachZeroAtTheEnd) {
  const Schedule schedule = warmup(Schedule::Kind::kWarmupDecay, true, 10);
  EXPECT_DOUBLE_EQ(schedule.at(5), 0.6);
  EXPECT_DOUBLE_EQ(schedule.at(10), 1.1);
  EXPECT_DOUBLE_EQ(schedule.at(60), 0.6);
  EXPECT_DOUBLE_EQ(schedule.at(110), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(5000), 0.1);
}

TEST(Schedule, CosineFallsToItsRatioAndNotBelow) {
  const Schedule schedule = warmup(Schedule::Kind::kWarmupCosine, true, 10);
  EXPECT_DOUBLE_EQ(schedule.at(5), 1.0);
  EXPECT_NEAR(schedule.at(59), 2.0 * (1e-4 + (1 - 1e-4) * 0.5), 1e-12);
  EXPECT_DOUBLE_EQ(schedule.at(109), 2e-4);
  EXPECT_DOUBLE_EQ(schedule.at(5000), 2e-4);
}

TEST(Schedule, NoneOrOneWarmUpStepDividesByNothing) {
  for (const int64_t steps : {0, 1, 2}) {
    for (const auto kind :
         {Schedule::Kind::kWarmup, Schedule::Kind::kWarmupDecay, Schedule::Kind::kWarmupCosine}) {
      for (const bool linear : {false, true}) {
        const Schedule schedule = warmup(kind, linear, steps);
        for (int64_t n = 0; n < 5; ++n) EXPECT_TRUE(std::isfinite(schedule.at(n))) << steps << " " << n;
      }
    }
  }
}

}  // namespace
}  // namespace tern::trainer
