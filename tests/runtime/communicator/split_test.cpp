// Communicators made of communicators.
#include <gtest/gtest.h>

#include <thread>

#include "tests/ranks.h"

namespace tern {
namespace {

using testing::on_ranks;
using testing::quick_config;

int sum_of(Communicator& comm, int x) {
  const Status status = comm.all_reduce(std::span<const int>(&x, 1), std::span<int>(&x, 1), Op::kSum);
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  return x;
}

TEST(Split, GroupsRanksByColorInTheOrderOfTheirKeys) {
  on_ranks(7, quick_config(), [](Communicator& comm) {
    // Odd and even ranks, each in reverse.
    auto half = comm.split(comm.rank() % 2, -comm.rank());
    ASSERT_TRUE(half.ok()) << half.error().to_string();
    const bool is_odd = comm.rank() % 2 == 1;
    EXPECT_EQ(half->size(), is_odd ? 3 : 4);
    EXPECT_EQ(half->rank(), half->size() - 1 - comm.rank() / 2);
    EXPECT_EQ(sum_of(*half, comm.rank()), is_odd ? 1 + 3 + 5 : 0 + 2 + 4 + 6);
    std::vector<int> order(static_cast<size_t>(half->size()));
    const int own = comm.rank();
    ASSERT_TRUE(half->all_gather(std::span<const int>(&own, 1), std::span<int>(order)).ok());
    EXPECT_EQ(order, is_odd ? (std::vector<int>{5, 3, 1}) : (std::vector<int>{6, 4, 2, 0}));
    // Split once more, down to single ranks, while the parents go on.
    auto single = half->split(half->rank(), 0);
    ASSERT_TRUE(single.ok()) << single.error().to_string();
    EXPECT_EQ(single->size(), 1);
    EXPECT_EQ(sum_of(*single, 5), 5);
    EXPECT_EQ(sum_of(comm, 1), 7);
  });
}

TEST(Split, RefusesANegativeColor) {
  on_ranks(2, quick_config(), [](Communicator& comm) {
    const auto none = comm.split(-1, 0);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, Code::kInvalidArgument);
    EXPECT_EQ(sum_of(comm, 1), 2);
  });
}

class CommunicatorsAtOnce : public ::testing::TestWithParam<std::string> {};

TEST_P(CommunicatorsAtOnce, RunFromTheirOwnThreadsWithoutOrderBetweenThem) {
  Config config = quick_config();
  config.transport = GetParam();
  on_ranks(3, config, [](Communicator& comm) {
    auto other = comm.duplicate();
    ASSERT_TRUE(other.ok()) << other.error().to_string();
    const auto work = [](Communicator& c, int n_calls, size_t n) {
      for (int k = 1; k <= n_calls; ++k) {
        std::vector<float> x(n, static_cast<float>(k));
        ASSERT_TRUE(c.all_reduce(std::span<const float>(x), std::span<float>(x), Op::kSum).ok());
        for (const float v : x) ASSERT_EQ(v, 3.0F * static_cast<float>(k)) << "call " << k;
      }
    };
    std::thread beside([&] { work(*other, 40, 3000); });
    work(comm, 40, 100);
    beside.join();
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, CommunicatorsAtOnce, ::testing::Values("inproc", "ucx", "tcp"));

}  // namespace
}  // namespace tern
