// Asynchronous calls: in order, several at once, mixed with blocking ones.
#include <gtest/gtest.h>

#include "tests/ranks.h"

namespace tern {
namespace {

using testing::on_ranks;
using testing::quick_config;

TEST(AsyncCalls, RunInCallOrderAndGiveTheSameResultsAsBlockingOnes) {
  on_ranks(4, quick_config(), [](Communicator& comm) {
    constexpr size_t kCalls = 20;
    std::vector<std::vector<float>> data(kCalls);
    std::vector<Work> works;
    for (size_t k = 0; k < kCalls; ++k) {
      data[k].assign(1000 * k + 1, static_cast<float>(comm.rank() + 1) * static_cast<float>(k));
      auto work = comm.all_reduce_async(std::span<const float>(data[k]), std::span<float>(data[k]), Op::kSum);
      ASSERT_TRUE(work.ok()) << work.error().to_string();
      works.push_back(std::move(*work));
    }
    float one = 1;
    ASSERT_TRUE(comm.all_reduce(std::span<const float>(&one, 1), std::span<float>(&one, 1), Op::kSum).ok());
    EXPECT_EQ(one, 4.0F);
    for (size_t k = 0; k < kCalls; ++k) {
      EXPECT_TRUE(works[k].done()) << "a blocking call runs after the asynchronous ones before it";
      ASSERT_TRUE(works[k].wait().ok());
      EXPECT_FALSE(works[k].report().algorithm.empty());
      for (const float x : data[k]) ASSERT_EQ(x, 10.0F * static_cast<float>(k)) << "call " << k;
    }
  });
}

TEST(AsyncCalls, OfEveryCollectiveComplete) {
  on_ranks(3, quick_config(), [](Communicator& comm) {
    std::vector<float> whole(300, static_cast<float>(comm.rank()));
    std::vector<float> share(100);
    std::vector<float> gathered(300);
    auto scatter =
        comm.reduce_scatter_async(std::span<const float>(whole), std::span<float>(share), Op::kSum);
    auto gather = comm.all_gather_async(std::span<const float>(share), std::span<float>(gathered));
    auto spread = comm.broadcast_async(std::span<float>(whole), 2);
    ASSERT_TRUE(scatter.ok() && gather.ok() && spread.ok());
    ASSERT_TRUE(scatter->wait().ok() && gather->wait().ok() && spread->wait().ok());
    for (const float x : gathered) ASSERT_EQ(x, 3.0F);
    for (const float x : whole) ASSERT_EQ(x, 2.0F);
  });
}

TEST(AsyncCalls, ThatAreDroppedAreWaitedFor) {
  on_ranks(2, quick_config(), [](Communicator& comm) {
    std::vector<float> x(50000, 1);
    {
      auto work = comm.all_reduce_async(std::span<const float>(x), std::span<float>(x), Op::kSum);
      ASSERT_TRUE(work.ok());
    }
    for (const float v : x) ASSERT_EQ(v, 2.0F);
  });
}

TEST(AsyncCalls, WaitGivesUpAtItsDeadlineWhileTheCallGoesOn) {
  on_ranks(2, quick_config(), [](Communicator& comm) {
    float x = 1;
    auto work = comm.rank() == 0
                    ? comm.all_reduce_async(std::span<const float>(&x, 1), std::span<float>(&x, 1), Op::kSum)
                    : Result<Work>(Work());
    ASSERT_TRUE(work.ok());
    if (comm.rank() == 0) {
      const Status early = work->wait(Deadline::after(Seconds(0.05)));
      ASSERT_FALSE(early.ok());
      EXPECT_EQ(early.error().code, Code::kTimeout);
      ASSERT_TRUE(comm.world().store->set("rank 0 gave up", "yes").ok());
      EXPECT_TRUE(work->wait().ok());
    } else {
      ASSERT_TRUE(comm.world().store->get("rank 0 gave up", Deadline::after(Seconds(20))).ok());
      ASSERT_TRUE(comm.all_reduce(std::span<const float>(&x, 1), std::span<float>(&x, 1), Op::kSum).ok());
    }
    EXPECT_EQ(x, 2.0F);
  });
}

}  // namespace
}  // namespace tern
