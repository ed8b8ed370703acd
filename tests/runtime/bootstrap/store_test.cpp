// Every store keeps the contract of store.h: one suite over the ways to make one.
#include "runtime/bootstrap/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "runtime/bootstrap/memory_store.h"
#include "runtime/bootstrap/tcp_store.h"

namespace tern {
namespace {

using testing::HasSubstr;

Deadline soon() {
  return Deadline::after(Seconds(0.05));
}
Deadline patient() {
  return Deadline::after(Seconds(20));
}

std::vector<std::shared_ptr<Store>> make_tcp_stores(int n_ranks) {
  auto server = StoreServer::create({.size = n_ranks, .secret = "s", .address = "127.0.0.1"}).value();
  const int port = server->port();
  std::vector<std::shared_ptr<Store>> stores;
  for (int rank = 0; rank < n_ranks; ++rank) {
    const TcpStore::Options options = {.rank = rank,
                                       .size = n_ranks,
                                       .addresses = {"127.0.0.1"},
                                       .port = port,
                                       .secret = "s",
                                       .deadline = patient()};
    stores.push_back(TcpStore::join(options, rank == 0 ? std::move(server) : nullptr).value());
  }
  return stores;
}

struct Row {
  std::string name;
  std::vector<std::shared_ptr<Store>> (*make)(int n_ranks);
};

class EveryStore : public testing::TestWithParam<Row> {};
INSTANTIATE_TEST_SUITE_P(Stores, EveryStore,
                         testing::Values(Row{"memory", make_memory_stores}, Row{"tcp", make_tcp_stores}),
                         [](const auto& row) { return row.param.name; });

// Rank 0's TCP store waits for the others to leave, so they go first.
void leave_all(std::vector<std::shared_ptr<Store>>& stores) {
  while (!stores.empty()) stores.pop_back();
}

TEST_P(EveryStore, HandsAValueFromTheRankThatSetItToTheRankThatAsks) {
  auto stores = GetParam().make(2);
  ASSERT_TRUE(stores[1]->set("key", std::string("a\0b", 3)).ok());
  EXPECT_EQ(stores[0]->get("key", patient()).value(), std::string("a\0b", 3));
  leave_all(stores);
}

TEST_P(EveryStore, LetsARankWaitForAKeyThatIsSetLater) {
  auto stores = GetParam().make(2);
  std::thread asker([&] { EXPECT_EQ(stores[0]->get("later", patient()).value(), "v"); });
  EXPECT_TRUE(stores[1]->set("later", "v").ok());
  asker.join();
  leave_all(stores);
}

TEST_P(EveryStore, RefusesAnotherValueForAKeyAndAcceptsTheSame) {
  auto stores = GetParam().make(2);
  ASSERT_TRUE(stores[0]->set("key", "one").ok());
  EXPECT_TRUE(stores[1]->set("key", "one").ok());
  const Status second = stores[1]->set("key", "two");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Code::kInvalidArgument);
  EXPECT_THAT(second.error().message, HasSubstr("\"key\""));
  leave_all(stores);
}

TEST_P(EveryStore, TimesOutNamingTheKey) {
  auto stores = GetParam().make(1);
  for (const Deadline deadline : {soon(), Deadline(Clock::now())}) {
    const auto value = stores[0]->get("nobody", deadline);
    ASSERT_FALSE(value.ok());
    EXPECT_EQ(value.error().code, Code::kTimeout);
    EXPECT_THAT(value.error().message, HasSubstr("\"nobody\""));
  }
}

TEST_P(EveryStore, TellsAllRanksOfTheFirstFailureAndEndsTheirWaits) {
  auto stores = GetParam().make(3);
  EXPECT_FALSE(stores[1]->failure());
  std::thread asker([&] {
    const auto value = stores[1]->get("never", patient());
    ASSERT_FALSE(value.ok());
    EXPECT_EQ(value.error().message, "rank 2 gives up");
    EXPECT_EQ(value.error().rank, 2);
  });
  stores[2]->fail(error_at(2, Code::kAborted, "rank 2 gives up"));
  asker.join();
  stores[0]->fail(error_at(0, Code::kAborted, "a later failure"));
  EXPECT_EQ(stores[2]->failure()->message, "rank 2 gives up");
  EXPECT_FALSE(stores[0]->get("never", patient()).ok());
  leave_all(stores);
}

TEST_P(EveryStore, StillHandsOutWhatWasSetBeforeAFailure) {
  auto stores = GetParam().make(2);
  ASSERT_TRUE(stores[0]->set("key", "kept").ok());
  stores[0]->fail(error_at(0, Code::kAborted, "over"));
  EXPECT_EQ(stores[1]->get("key", patient()).value(), "kept");
  leave_all(stores);
}

TEST_P(EveryStore, ShowsWatchersAKeyWhenItIsSetEvenAfterAFailure) {
  auto stores = GetParam().make(2);
  const auto early = stores[1]->watch("key");
  EXPECT_FALSE(early->is_set());
  stores[0]->fail(error_at(0, Code::kAborted, "over"));
  ASSERT_TRUE(stores[0]->set("key", "seen").ok());
  const auto late = stores[1]->watch("key");
  ASSERT_TRUE(stores[1]->get("key", patient()).ok());  // the answer comes after those to the watches
  ASSERT_TRUE(early->is_set());
  ASSERT_TRUE(late->is_set());
  EXPECT_EQ(early->value(), "seen");
  EXPECT_EQ(late->value(), "seen");
  leave_all(stores);
}

TEST_P(EveryStore, TakesNoLeaveForAFailure) {
  auto stores = GetParam().make(3);
  stores[1]->leave();
  stores.erase(stores.begin() + 1);
  ASSERT_TRUE(stores[1]->set("still", "here").ok());
  EXPECT_EQ(stores[0]->get("still", patient()).value(), "here");
  EXPECT_FALSE(stores[0]->failure());
  leave_all(stores);
}

TEST_P(EveryStore, ExchangesAmongAllRanksInRankOrder) {
  constexpr int kRanks = 17;
  auto stores = GetParam().make(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto values = exchange(*stores[rank], rank, kRanks, {"x", fmt::format("of {}", rank), patient()});
      ASSERT_TRUE(values.ok()) << values.error().to_string();
      ASSERT_EQ(values->size(), kRanks);
      for (int other = 0; other < kRanks; ++other) EXPECT_EQ((*values)[other], fmt::format("of {}", other));
    });
  }
  for (auto& thread : threads) thread.join();
  leave_all(stores);
}

TEST_P(EveryStore, NamesTheRanksThatDidNotComeToAnExchange) {
  auto stores = GetParam().make(5);
  const std::vector<int> members = {0, 2, 3, 4};
  std::vector<std::thread> threads;
  for (const int rank : {0, 3}) {
    threads.emplace_back([&, rank] {
      const auto values =
          exchange_among(*stores[rank], rank, members, {"x", "", Deadline::after(Seconds(0.3))});
      ASSERT_FALSE(values.ok());
      EXPECT_EQ(values.error().code, Code::kTimeout);
      EXPECT_EQ(values.error().rank, 2);
      EXPECT_THAT(values.error().message, HasSubstr("ranks 2, 4 of 4"));
    });
  }
  for (auto& thread : threads) thread.join();
  leave_all(stores);
}

}  // namespace
}  // namespace tern
