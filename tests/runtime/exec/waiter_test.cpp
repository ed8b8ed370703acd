#include "runtime/exec/waiter.h"

#include <gtest/gtest.h>

#include "runtime/bootstrap/world.h"

namespace tern {
namespace {

/// A rank alone, with nothing to wait for but the deadline.
class WaiterTest : public ::testing::Test {
 protected:
  WaiterTest()
      : world_(World::in_process_world(1, Config()).value().front()),
        transport_(connect(world_, std::vector<int>{0}, "test").value()) {}

  Waiter waiter(const WaitPolicy& policy, Deadline deadline = Deadline()) {
    return {*transport_, spin_, policy, deadline_ = deadline};
  }

  World world_;
  std::unique_ptr<Transport> transport_;
  SpinBudget spin_{Clock::duration::zero()};
  Deadline deadline_;
};

TEST_F(WaiterTest, ThatGivesItsCoreAwayAlsoMovesWhatItDoesNotWaitFor) {
  const WaitPolicy yields{.yield = std::chrono::hours(1)};
  Waiter yielding = waiter(yields);
  EXPECT_FALSE(yielding.idle());
  ASSERT_TRUE(yielding.step());
  EXPECT_TRUE(yielding.idle()) << "a send that is stuck may be what the others wait for";

  const WaitPolicy sleeps{};
  Waiter sleeping = waiter(sleeps);
  ASSERT_TRUE(sleeping.step());
  EXPECT_TRUE(sleeping.idle()) << "before it sleeps";
}

TEST_F(WaiterTest, ThatSpinsLooksAroundOnlyAfterAWhile) {
  const WaitPolicy spins{.spin = std::chrono::hours(1)};
  Waiter spinning = waiter(spins);
  ASSERT_TRUE(spinning.step());
  EXPECT_FALSE(spinning.idle());
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(spinning.step());
  EXPECT_TRUE(spinning.idle());
}

TEST_F(WaiterTest, EndsAtItsDeadline) {
  const WaitPolicy sleeps{};
  Waiter late = waiter(sleeps, Deadline(Clock::time_point::min()));
  ASSERT_TRUE(late.step()) << "arms first";
  EXPECT_FALSE(late.step());
}

}  // namespace
}  // namespace tern
