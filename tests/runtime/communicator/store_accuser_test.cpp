#include "runtime/communicator/store_accuser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "runtime/bootstrap/memory_store.h"

namespace tern {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr Seconds kTimeout{0.02};

Wait wait_of(int rank, int peer, Seconds in_call = kTimeout) {
  return {.call = "barrier #1", .rank = rank, .peer = peer, .timeout = kTimeout, .in_call = in_call};
}

// What each of the ranks that wait says in the end.
std::vector<Error> answers(std::span<const Wait> waits) {
  const auto stores = make_memory_stores(static_cast<int>(waits.size()));
  std::vector<StoreAccuser> accusers;
  for (const auto& store : stores) accusers.emplace_back(*store, "communicator");
  for (size_t i = 0; i < waits.size(); ++i) accusers[i].ask(waits[i]);
  std::vector<Error> errors;
  for (StoreAccuser& accuser : accusers) {
    std::optional<Error> answer;
    while (!(answer = accuser.answer())) std::this_thread::yield();
    errors.push_back(*answer);
  }
  return errors;
}

TEST(StoreAccuser, AsksTheOtherRanksWhomTheyWaitFor) {
  const auto stores = make_memory_stores(2);
  StoreAccuser first(*stores[0], "communicator");
  StoreAccuser second(*stores[1], "communicator");
  const StoreAccuser elsewhere(*stores[1], "another");
  EXPECT_FALSE(second.is_asked());
  first.ask(wait_of(0, 1));
  EXPECT_TRUE(second.is_asked());
  EXPECT_FALSE(elsewhere.is_asked());
}

TEST(StoreAccuser, NamesTheRankAtTheEndOfTheChainThatSaysNothing) {
  for (const Error& error : answers(std::vector<Wait>{wait_of(0, 1), wait_of(1, 2), wait_of(2, 7)})) {
    EXPECT_EQ(error.code, Code::kTimeout);
    EXPECT_EQ(error.rank, 7) << error.message;
    EXPECT_EQ(error.message, "barrier #1 on rank 2: rank 7 did not take part within 0.02 s");
  }
}

TEST(StoreAccuser, TellsOfALostMessageWhereAllWaitInACircle) {
  for (const Error& error : answers(std::vector<Wait>{wait_of(0, 2), wait_of(1, 2), wait_of(2, 1)}))
    EXPECT_THAT(error.message, AllOf(HasSubstr("wait for each other in a circle"), HasSubstr("lost")));
}

TEST(StoreAccuser, NamesTheRankOfACircleThatCameLate) {
  const std::vector<Wait> waits = {wait_of(0, 1), wait_of(1, 2, kTimeout / 10), wait_of(2, 0)};
  for (const Error& error : answers(waits)) {
    EXPECT_EQ(error.rank, 1) << error.message;
    EXPECT_THAT(error.message, HasSubstr("rank 1 did not take part within 0.02 s; it came 0.018 s late"));
  }
}

// A store whose host has stopped: it takes what it is told, and says nothing.
class SilentStore final : public Store {
 public:
  Status set(std::string_view /*key*/, std::string_view /*value*/) override {
    return error(Code::kTimeout, "no answer");
  }
  Result<std::string> get(std::string_view /*key*/, Deadline /*deadline*/) override {
    return error(Code::kTimeout, "no answer");
  }
  std::shared_ptr<const Watch> watch(std::string_view /*key*/) override { return std::make_shared<Watch>(); }
  std::optional<Error> failure() const override { return std::nullopt; }
  void fail(const Error& /*error*/) override {}
  void leave() override {}
};

TEST(StoreAccuser, NamesTheStoresHostWhenTheStoreSaysNothing) {
  SilentStore store;
  StoreAccuser accuser(store, "communicator");
  accuser.ask(wait_of(2, 1));
  std::optional<Error> answer;
  while (!(answer = accuser.answer())) std::this_thread::yield();
  EXPECT_EQ(answer->rank, 0);
  EXPECT_THAT(answer->message, HasSubstr("rank 0, which hosts the store, does not answer"));
}

}  // namespace
}  // namespace tern
