// Wrong calls, ranks that disagree, ranks that stay away, aborts: an error that says what happened, never a
// hang.
#include <gtest/gtest.h>

#include "tests/ranks.h"
#include "tests/runtime/communicator/cases.h"

namespace tern {
namespace {

using testing::on_ranks;
using testing::quick_config;

TEST(WrongCalls, AreRefusedAndTheCommunicatorGoesOn) {
  on_ranks(2, quick_config(), [](Communicator& comm) {
    std::vector<float> x(10);
    std::vector<float> y(11);
    const auto refused = [](const Status& status) {
      return !status.ok() && status.error().code == Code::kInvalidArgument;
    };
    EXPECT_TRUE(refused(comm.all_reduce(std::span<const float>(x), std::span<float>(y), Op::kSum)));
    EXPECT_TRUE(
        refused(comm.all_reduce({nullptr, 10, Dtype::kFloat32}, {x.data(), 10, Dtype::kFloat32}, Op::kSum)));
    EXPECT_TRUE(refused(
        comm.all_reduce({x.data(), 9, Dtype::kFloat32}, {x.data() + 1, 9, Dtype::kFloat32}, Op::kSum)));
    EXPECT_TRUE(
        refused(comm.all_reduce({x.data(), 10, Dtype::kFloat32}, {y.data(), 10, Dtype::kInt32}, Op::kSum)));
    EXPECT_TRUE(refused(comm.reduce_scatter(std::span<const float>(x), std::span<float>(y), Op::kSum)));
    EXPECT_TRUE(refused(comm.all_gather(std::span<const float>(x), std::span<float>(y))));
    EXPECT_TRUE(refused(comm.broadcast(std::span<float>(x), 2)));
    EXPECT_TRUE(refused(comm.broadcast(std::span<float>(x), -1)));
    EXPECT_TRUE(refused(comm.all_reduce(std::span<const float>(x), std::span<float>(x), Op::kSum,
                                        {.algorithm = "no such algorithm"})));
    const size_t huge = SIZE_MAX / 4;
    EXPECT_TRUE(
        refused(comm.all_gather({x.data(), huge, Dtype::kFloat32}, {y.data(), huge, Dtype::kFloat32})));
    EXPECT_TRUE(comm.all_reduce(std::span<const float>(x), std::span<float>(x), Op::kSum).ok());
  });
}

// Rank 1 does something else than the others; every rank must learn who called what.
template <class Odd, class Others>
void expect_mismatch(int n_ranks, const Odd& odd, const Others& others) {
  on_ranks(n_ranks, quick_config(), [&](Communicator& comm) {
    // A rank may still be in the barrier when the others fall out, and one that needs nothing from the odd
    // rank may finish the odd call; each learns at its next step.
    Status next = comm.barrier();
    if (next.ok()) next = comm.rank() == 1 ? odd(comm) : others(comm);
    if (next.ok()) next = comm.barrier();
    ASSERT_FALSE(next.ok()) << "rank " << comm.rank();
    EXPECT_EQ(next.error().code, Code::kMismatch) << next.error().to_string();
    EXPECT_NE(next.error().message.find("rank 1 called"), std::string::npos) << next.error().to_string();
    EXPECT_EQ(comm.barrier().error().code, Code::kAborted);
  });
}

Status sum(Communicator& comm, size_t n, Op op = Op::kSum) {
  std::vector<float> x(n);
  return comm.all_reduce(std::span<const float>(x), std::span<float>(x), op);
}

TEST(RanksThatDisagree, OnTheCollectiveSayWhoCalledWhat) {
  for (const int n_ranks : {2, 4}) {
    expect_mismatch(
        n_ranks, [](Communicator& comm) { return comm.barrier(); },
        [](Communicator& comm) { return sum(comm, 100); });
  }
}

TEST(RanksThatDisagree, OnTheCountSayWhoCalledWhat) {
  for (const size_t n : {1, 100, 1000000}) {
    expect_mismatch(
        4, [&](Communicator& comm) { return sum(comm, n + 1); },
        [&](Communicator& comm) { return sum(comm, n); });
  }
}

TEST(RanksThatDisagree, OnTheOperatorSayWhoCalledWhat) {
  expect_mismatch(
      3, [](Communicator& comm) { return sum(comm, 100, Op::kMax); },
      [](Communicator& comm) { return sum(comm, 100); });
}

TEST(RanksThatDisagree, OnTheCodecSayWhoCalledWhat) {
  expect_mismatch(
      2,
      [](Communicator& comm) {
        std::vector<float> x(100000);
        return comm.all_reduce(std::span<const float>(x), std::span<float>(x), Op::kSum,
                               {.codec = CodecSpec{.id = CodecId::kQ8}});
      },
      [](Communicator& comm) { return sum(comm, 100000); });
}

// All others must name the absent rank, also those that wait for one of their own number.
void stay_away(std::string_view algorithm, int n_ranks, int absent) {
  Config config = quick_config();
  config.timeout = Seconds(1);
  config.algorithm = fmt::format("all_reduce:{}", algorithm);
  std::atomic<int> n_failed{0};
  on_ranks(n_ranks, config, [&](Communicator& comm) {
    ASSERT_TRUE(comm.barrier().ok());
    if (comm.rank() == absent) {
      n_failed++;
      for (int n = n_failed; n < n_ranks; n = n_failed) n_failed.wait(n);
      return;
    }
    const Status status = sum(comm, 1000);
    n_failed++;
    n_failed.notify_all();
    const std::string text = status.ok() ? "no error" : status.error().to_string();
    const auto says = [&](std::string_view what) { return text.find(what) != std::string::npos; };
    EXPECT_TRUE(!status.ok() && status.error().code == Code::kTimeout && status.error().rank == absent &&
                says(fmt::format("rank {} did not take part", absent)) && says("all_reduce"))
        << algorithm << " p=" << n_ranks << " absent " << absent << " rank " << comm.rank() << ": " << text;
  });
}

TEST(ARankThatStaysAway, IsNamedByAllOthersWhenTheDeadlinePassesWhateverTheAlgorithm) {
  for (const int n_ranks : {3, 4, 5}) {
    std::vector<std::thread> worlds;  // at once: each passes its time asleep
    for (const Algorithm& algorithm : algorithms()) {
      if (!testing::can_run(algorithm, Collective::kAllReduce, n_ranks)) continue;
      for (const int absent : {0, n_ranks - 1})
        worlds.emplace_back([&algorithm, n_ranks, absent] { stay_away(algorithm.name, n_ranks, absent); });
    }
    for (std::thread& world : worlds) world.join();
  }
}

TEST(AMessageThatIsLost, IsToldWhenAllRanksWaitForEachOther) {
  Config config = quick_config();
  config.timeout = Seconds(0.4);
  config.faults = "rank=0,hole=3";
  on_ranks(2, config, [](Communicator& comm) {
    Status next;
    for (int i = 0; i < 10 && next.ok(); ++i) next = sum(comm, 10);
    ASSERT_FALSE(next.ok());
    EXPECT_EQ(next.error().code, Code::kTimeout) << next.error().to_string();
    EXPECT_NE(next.error().message.find("in a circle, so that a message among them is lost"),
              std::string::npos)
        << next.error().to_string();
  });
}

TEST(Abort, EndsTheWaitingCallsOfAllRanks) {
  on_ranks(3, quick_config(), [](Communicator& comm) {
    if (comm.rank() == 2) {
      comm.abort("told to");
      return;
    }
    const Status status = comm.barrier();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kAborted);
    EXPECT_NE(status.error().message.find("told to"), std::string::npos) << status.error().to_string();
  });
}

}  // namespace
}  // namespace tern
