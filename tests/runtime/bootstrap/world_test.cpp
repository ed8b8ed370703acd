#include "runtime/bootstrap/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "runtime/bootstrap/launch.h"
#include "tests/runtime/bootstrap/free_port.h"
#include "tests/runtime/bootstrap/process.h"

namespace tern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Config small_config() {
  Config config;
  config.heap_bytes = uint64_t{1} << 20;
  config.bootstrap_timeout = Seconds(20);
  config.secret = "tests";
  return config;
}

Result<World> join(int rank, int size, int port, const Config& config = small_config()) {
  return World::from_tcp({rank, size, "127.0.0.1", port}, config);
}

TEST(InProcessWorld, GivesEveryThreadItsPlace) {
  const auto worlds = World::in_process_world(17, small_config()).value();
  ASSERT_EQ(worlds.size(), 17u);
  for (int rank = 0; rank < 17; ++rank) {
    const World& world = worlds[rank];
    EXPECT_EQ(world.rank, rank);
    EXPECT_EQ(world.size, 17);
    EXPECT_EQ(world.local_rank, rank);
    EXPECT_EQ(world.local_size, 17);
    EXPECT_TRUE(world.in_process);
    EXPECT_EQ(world.host_ids.size(), 17u);
  }
}

TEST(InProcessWorld, RefusesToBeEmpty) {
  EXPECT_EQ(World::in_process_world(0, small_config()).error().code, Code::kInvalidArgument);
}

TEST(TcpWorld, OfOneNeedsNoNetwork) {
  const World world = join(0, 1, 9).value();
  EXPECT_EQ(world.size, 1);
  EXPECT_THAT(world.host_ids, ElementsAre(world.host_id));
  EXPECT_EQ(exchange(*world.store, 0, 1, {"x", "v", Deadline::after(Seconds(1))}).value().front(), "v");
}

TEST(TcpWorld, RefusesAPlaceThatIsNone) {
  EXPECT_THAT(join(3, 3, 9).error().message, HasSubstr("rank 3 of 3"));
  EXPECT_THAT(join(-1, 3, 9).error().message, HasSubstr("rank -1"));
  EXPECT_THAT(join(0, 2, 70000).error().message, HasSubstr("70000"));
}

TEST(TcpWorld, PutsRanksWithEqualHostIdentitiesOnOneHost) {
  const int port = free_port();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([rank, port] {
      Config config = small_config();
      config.host_id = rank % 2 == 0 ? "even" : "odd";
      const auto world = join(rank, 4, port, config);
      ASSERT_TRUE(world.ok()) << world.error().to_string();
      EXPECT_THAT(world->host_ids, ElementsAre("even", "odd", "even", "odd"));
      EXPECT_EQ(world->local_rank, rank / 2);
      EXPECT_EQ(world->local_size, 2);
      EXPECT_EQ(world->address, "127.0.0.1");
    });
  }
  for (auto& rank : ranks) rank.join();
}

TEST(TcpWorld, LetsRanksComeBeforeRankZero) {
  const int port = free_port();
  ChildProcess early([port] { return join(1, 2, port).ok() ? 0 : 1; });
  const auto world = join(0, 2, port);
  ASSERT_TRUE(world.ok()) << world.error().to_string();
  EXPECT_EQ(early.wait(), 0);
  EXPECT_FALSE(world->store->failure());
}

TEST(TcpWorld, NamesTheRanksThatDidNotCome) {
  const int port = free_port();
  Config config = small_config();
  config.bootstrap_timeout = Seconds(0.5);
  ChildProcess second([&] {
    const auto world = join(2, 4, port, config);
    if (world.ok()) return 1;
    return world.error().code == Code::kTimeout && world.error().message.find("1, 3") != std::string::npos
               ? 0
               : 2;
  });
  const auto world = join(0, 4, port, config);
  ASSERT_FALSE(world.ok());
  EXPECT_EQ(world.error().code, Code::kTimeout);
  EXPECT_EQ(world.error().rank, 1);
  EXPECT_THAT(world.error().message, HasSubstr("ranks 1, 3 of 4 did not come to the rendezvous within"));
  EXPECT_EQ(second.wait(), 0);
}

TEST(TcpWorld, NamesRankZeroWhenItDidNotCome) {
  Config config = small_config();
  config.bootstrap_timeout = Seconds(0.2);
  const auto world = join(1, 2, free_port(), config);
  ASSERT_FALSE(world.ok());
  EXPECT_EQ(world.error().code, Code::kTimeout);
  EXPECT_EQ(world.error().rank, -1) << "rank 0 or the way to it: only this rank can tell";
  EXPECT_THAT(world.error().message, HasSubstr("rank 1 could not join rank 0's store"));
}

TEST(TcpWorld, ARankWithoutTheInterfaceEndsTheOthersToo) {
  const int port = free_port();
  ChildProcess second([port] {
    Config config = small_config();
    config.net_interface = "no-such-interface";
    const auto world = join(1, 2, port, config);
    return !world.ok() && world.error().rank == -1 ? 0 : 1;
  });
  const auto world = join(0, 2, port);
  ASSERT_FALSE(world.ok());
  EXPECT_EQ(world.error().rank, 1);
  EXPECT_THAT(world.error().message, HasSubstr("rank 1: TERN_NET_INTERFACE"));
  EXPECT_EQ(second.wait(), 0);
}

// Joins, says so through the world's store, and stays until it is killed.
int join_and_stay(int rank, int size, int port) {
  const auto world = join(rank, size, port);
  if (!world.ok()) return 1;
  static_cast<void>(world->store->set(fmt::format("ready/{}", rank), ""));
  pause();
  return 2;
}

// Joins and waits for a failure that names `expected`.
int join_and_expect_loss(int rank, int size, int port, int expected) {
  const auto world = join(rank, size, port);
  if (!world.ok()) return 1;
  static_cast<void>(world->store->set(fmt::format("ready/{}", rank), ""));
  const auto never = world->store->get("never", Deadline::after(Seconds(20)));
  if (never.ok() || never.error().code != Code::kPeerLost || never.error().rank != expected) return 2;
  return world->store->failure() && world->store->failure()->rank == expected ? 0 : 3;
}

TEST(TcpWorld, TellsEveryOtherRankWhichProcessWasKilled) {
  const int port = free_port();
  ChildProcess victim([port] { return join_and_stay(2, 4, port); });
  ChildProcess first([port] { return join_and_expect_loss(1, 4, port, 2); });
  ChildProcess last([port] { return join_and_expect_loss(3, 4, port, 2); });
  const World world = join(0, 4, port).value();
  for (const int rank : {1, 2, 3}) {
    ASSERT_TRUE(world.store->get(fmt::format("ready/{}", rank), Deadline::after(Seconds(20))).ok());
  }
  victim.kill();
  const auto never = world.store->get("never", Deadline::after(Seconds(20)));
  ASSERT_FALSE(never.ok());
  EXPECT_EQ(never.error().code, Code::kPeerLost);
  EXPECT_EQ(never.error().rank, 2);
  EXPECT_THAT(never.error().message, HasSubstr("rank 2 is lost"));
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(last.wait(), 0);
}

TEST(TcpWorld, TellsEveryOtherRankWhenTheHostOfTheStoreWasKilled) {
  const int port = free_port();
  ChildProcess host([port] { return join_and_stay(0, 3, port); });
  ChildProcess other([port] { return join_and_expect_loss(2, 3, port, 0); });
  const World world = join(1, 3, port).value();
  for (const int rank : {0, 2}) {
    ASSERT_TRUE(world.store->get(fmt::format("ready/{}", rank), Deadline::after(Seconds(20))).ok());
  }
  host.kill();
  const auto never = world.store->get("never", Deadline::after(Seconds(20)));
  ASSERT_FALSE(never.ok());
  EXPECT_EQ(never.error().code, Code::kPeerLost);
  EXPECT_EQ(never.error().rank, 0);
  EXPECT_EQ(world.store->failure()->rank, 0);
  EXPECT_EQ(other.wait(), 0);
}

TEST(TcpWorld, LosesNothingWhenRankZeroEndsFirst) {
  const int port = free_port();
  ChildProcess host([port] {
    const auto world = join(0, 2, port);
    return world.ok() && world->store->set("last words", "bye").ok() ? 0 : 1;
  });
  {
    const World world = join(1, 2, port).value();
    EXPECT_EQ(world.store->get("last words", Deadline::after(Seconds(20))).value(), "bye");
    EXPECT_FALSE(world.store->failure());
  }
  EXPECT_EQ(host.wait(), 0);
}

TEST(Allocation, LivesInTheWorldsHeapAndIsMoveOnly) {
  const World world = join(0, 1, 9).value();
  Allocation first = allocate(world, 1000).value();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data()) % 64, 0u);
  EXPECT_TRUE(world.heap->contains(first.data(), 1000));
  EXPECT_EQ(first.as<float>().size(), 250u);
  const void* const data = first.data();
  const Allocation second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(allocate(world, size_t{1} << 40).error().code, Code::kOutOfMemory);
}

}  // namespace
}  // namespace tern
