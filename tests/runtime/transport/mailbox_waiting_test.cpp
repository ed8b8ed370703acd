// Sleeping, waking, aborting and losing peers in the mailbox core.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/transport/mailbox_fixture.h"

namespace tern {
namespace {

using ::testing::HasSubstr;

class MailboxWaitingTest : public MailboxTest {};
INSTANTIATE_TEST_SUITE_P(Local, MailboxWaitingTest, kMailboxTransports, name_of_row);

TEST_P(MailboxWaitingTest, AbortFailsEveryRankWithTheFirstError) {
  connect(3);
  auto recv = recv_request(1, nullptr, 4);
  at(0).recv(recv);
  EXPECT_EQ(at(0).poll(recv), Poll::kPending);
  at(2).abort(error_at(1, Code::kTimeout, "rank 1 is late {}", std::string(5000, 'x')));
  at(1).abort(error(Code::kAborted, "too late to count"));
  EXPECT_EQ(at(0).poll(recv), Poll::kFailed);
  EXPECT_EQ(at(0).failure().code, Code::kTimeout);
  EXPECT_EQ(at(0).failure().rank, 1);
  EXPECT_THAT(at(0).failure().message, HasSubstr("rank 1 is late xxx"));
  for (const int rank : {1, 2}) {
    const uint32_t value = 0;
    auto send = send_request(0, &value, 4);
    at(rank).send(send);
    EXPECT_EQ(at(rank).poll(send), Poll::kFailed);
    EXPECT_EQ(at(rank).failure().code, Code::kTimeout);
  }
}

TEST_P(MailboxWaitingTest, AbortWakesSleepers) {
  connect(3);
  std::vector<std::thread> sleepers;
  for (const int rank : {0, 1}) {
    sleepers.emplace_back([&, rank] {
      auto recv = recv_request(2, nullptr, 4);
      at(rank).recv(recv);
      while (at(rank).poll(recv) == Poll::kPending) {
        const uint64_t token = at(rank).arm();
        if (at(rank).poll(recv) != Poll::kPending) break;
        at(rank).sleep(token, std::chrono::hours(1));
      }
      EXPECT_EQ(at(rank).failure().message, "enough");
    });
  }
  at(2).abort(error(Code::kAborted, "enough"));
  for (std::thread& sleeper : sleepers) sleeper.join();
}

TEST_P(MailboxWaitingTest, SleepReturnsAtOnceWhenSomethingCameAfterArm) {
  connect(2);
  const uint32_t value = 1;
  auto send = send_request(1, &value, 4);
  auto recv = recv_request(0, nullptr, 4);
  at(1).recv(recv);
  uint64_t token = at(1).arm();
  EXPECT_EQ(at(1).poll(recv), Poll::kPending);
  at(0).send(send);
  at(1).sleep(token, std::chrono::hours(1));  // rung
  token = at(1).arm();
  EXPECT_EQ(at(1).poll(recv), Poll::kDone);
  at(1).sleep(token, std::chrono::hours(1));  // the poll made progress
  token = at(1).arm();
  at(1).sleep(token, std::chrono::microseconds(1));
}

TEST_P(MailboxWaitingTest, ReleasingAViewWakesItsSender) {
  connect(2);
  constexpr size_t kBytes = 8000;
  auto send = send_request(1, heap_memory(0, kBytes), kBytes);
  auto recv = recv_request(0, nullptr, kBytes);
  at(0).send(send);
  at(1).recv(recv);
  ASSERT_EQ(at(1).poll(recv), Poll::kDone);
  const uint64_t token = at(0).arm();
  EXPECT_EQ(at(0).poll(send), Poll::kPending);
  at(1).release(recv);
  at(0).sleep(token, std::chrono::hours(1));
  EXPECT_EQ(at(0).poll(send), Poll::kDone);
}

// A lost wake-up would hang: nothing else ends the sleeps.
TEST_P(MailboxWaitingTest, NoWakeUpIsLostWhenBothEndsOnlyEverSleep) {
  connect(2);
  constexpr size_t kRounds = 3000;
  const auto wait = [](Transport& transport, auto& request) {
    while (transport.poll(request) == Poll::kPending) {
      const uint64_t token = transport.arm();
      if (transport.poll(request) != Poll::kPending) break;
      transport.sleep(token, std::chrono::hours(1));
    }
  };
  const auto play = [&](int rank) {
    std::byte* mine = heap_memory(rank, 8000);
    for (size_t round = 0; round < kRounds; ++round) {
      const size_t n = round % 3 == 0 ? 8000 : 8;
      if (static_cast<int>(round % 2) == rank) {
        fill(mine, n, round);
        auto send = send_request(1 - rank, mine, n);
        at(rank).send(send);
        wait(at(rank), send);
      } else {
        auto recv = recv_request(1 - rank, nullptr, n);
        at(rank).recv(recv);
        wait(at(rank), recv);
        ASSERT_TRUE(holds(recv, n, round)) << round;
        at(rank).release(recv);
      }
    }
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
}

TEST_P(MailboxWaitingTest, APeerThatClosedIsNamedOnceWhatItSentIsRead) {
  connect(2);
  const uint32_t value = 3;
  auto send = send_request(1, &value, 4);
  at(0).send(send);
  ranks_[0].reset();
  at(1).sleep(at(1).arm(), std::chrono::milliseconds(30));  // long enough to look at the peers
  auto recv = recv_request(0, nullptr, 4);
  at(1).recv(recv);
  ASSERT_EQ(at(1).poll(recv), Poll::kDone);
  EXPECT_EQ(std::memcmp(recv.data, &value, 4), 0);
  at(1).release(recv);
  auto more = recv_request(0, nullptr, 4);
  at(1).recv(more);
  EXPECT_EQ(at(1).poll(more), Poll::kFailed);
  EXPECT_EQ(at(1).failure().code, Code::kPeerLost);
  EXPECT_EQ(at(1).failure().rank, 0);
}

TEST_P(MailboxWaitingTest, AFailureOfTheWorldCountsWhenTheRankIsAMember) {
  for (const bool member : {true, false}) {
    connect(4);
    connect_members({0, 2}, "two");
    store_->fail(error_at(member ? 2 : 3, Code::kPeerLost, "it is gone"));
    at(0).sleep(at(0).arm(), std::chrono::milliseconds(30));
    auto recv = recv_request(2, nullptr, 4);
    at(0).recv(recv);
    EXPECT_EQ(at(0).poll(recv), member ? Poll::kFailed : Poll::kPending);
    EXPECT_EQ(at(0).failure().message, member ? "it is gone" : "");
  }
}

TEST_P(MailboxWaitingTest, ConnectingNamesTheRankThatDoesNotCome) {
  store_ = SharedStore::create();
  worlds_ = worlds_over(store_, 2);
  worlds_[0].config.bootstrap_timeout = Seconds(0.05);
  const auto made = GetParam().connect(worlds_[0], std::vector<int>{0, 1}, "test");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::kTimeout);
  EXPECT_EQ(made.error().rank, 1);
}

}  // namespace
}  // namespace tern
