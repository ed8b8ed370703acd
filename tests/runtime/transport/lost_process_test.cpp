// Ranks as processes over TCP rendezvous, one of which is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/bootstrap/free_port.h"
#include "tests/runtime/bootstrap/process.h"
#include "tests/runtime/transport/ranks.h"

namespace tern {
namespace {

constexpr int kRanks = 4;
constexpr int kVictim = 2;

struct Row {
  std::string name;
  std::string transport;
  int n_hosts;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

class EveryTransportOfProcesses : public testing::TestWithParam<Row> {
 protected:
  Result<World> join(int rank, int port) const {
    Config config;
    config.transport = GetParam().transport;
    config.host_id = fmt::format("host {}", rank % GetParam().n_hosts);
    config.heap_bytes = uint64_t{16} << 20;
    return World::from_tcp({rank, kRanks, "127.0.0.1", port}, config);
  }

  // A message round the ring, so that everybody is connected.
  static bool go_round(RankUnderTest& self) {
    uint64_t number = 1;
    RecvRequest receive;
    receive.peer = self.previous();
    receive.into = &number;
    receive.n_bytes = sizeof number;
    SendRequest send;
    send.peer = self.next();
    send.data = &number;
    send.n_bytes = sizeof number;
    self.transport->recv(receive);
    self.send(send);
    if (self.wait(receive) != Poll::kDone) return false;
    self.transport->release(receive);
    return self.wait(send) == Poll::kDone;
  }

  static std::string heard_by(int rank) { return fmt::format("rank {} heard of all", rank); }

  // Once no other rank needs the store's answer any more.
  static void die(Store& store) {
    for (int rank = 0; rank < kRanks; ++rank)
      if (rank != kVictim) static_cast<void>(store.get(heard_by(rank), Deadline()));
    raise(SIGKILL);
  }

  // Waits for a message that never comes; 0 when that fails for the right reason. The victim kills itself.
  int survive(int rank, int port) const {
    auto world = join(rank, port);
    if (!world.ok()) return 1;
    auto transport = connect(*world, world->all_ranks(), "test");
    if (!transport.ok()) return 2;
    RankUnderTest self{*world, std::move(*transport), {}};
    if (!go_round(self)) return 3;
    if (!exchange(*world->store, rank, kRanks, {"all have gone round", "", Deadline()}).ok()) return 7;
    if (rank == kVictim) die(*world->store);
    if (!world->store->set(heard_by(rank), "").ok()) return 8;
    char byte = 0;
    RecvRequest never;
    never.peer = self.previous();
    never.into = &byte;
    never.n_bytes = 1;
    self.transport->recv(never);
    if (self.wait(never) != Poll::kFailed) return 4;
    if (self.transport->failure().code != Code::kPeerLost) return 5;
    return self.transport->failure().rank == kVictim ? 0 : 6;
  }
};
INSTANTIATE_TEST_SUITE_P(Rows, EveryTransportOfProcesses,
                         testing::Values(Row{"shm", "shm", 1}, Row{"ucx", "ucx", 1}, Row{"tcp", "tcp", 1},
                                         Row{"two_hosts", "auto", 2}),
                         [](const auto& row) { return row.param.name; });

TEST_P(EveryTransportOfProcesses, NamesTheKilledRankOnEveryOther) {
  const int port = free_port();
  std::vector<ChildProcess> children;
  for (int rank = 1; rank < kRanks; ++rank) {
    children.emplace_back([this, rank, port] { return survive(rank, port); });
  }
  ChildProcess host([this, port] { return survive(0, port); });
  for (int rank = 1; rank < kRanks; ++rank) {
    EXPECT_EQ(children[static_cast<size_t>(rank - 1)].wait(), rank == kVictim ? -SIGKILL : 0)
        << "rank " << rank;
  }
  EXPECT_EQ(host.wait(), 0);
}

}  // namespace
}  // namespace tern
