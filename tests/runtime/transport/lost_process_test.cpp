// Ranks as processes over TCP rendezvous, one of which is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>

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

// Rank 0 stops, and the store with it; rank 1 aborts: it must not wait for an answer.
class StoppedStore : public EveryTransportOfProcesses {
 protected:
  static constexpr int kPair = 2;

  Result<World> join_pair(int rank, int port) const {
    Config config;
    config.transport = GetParam().transport;
    config.host_id = fmt::format("host {}", rank % GetParam().n_hosts);
    config.heap_bytes = uint64_t{16} << 20;
    config.bootstrap_timeout = Seconds(86400);  // of the store's answers too
    return World::from_tcp({rank, kPair, "127.0.0.1", port}, config);
  }

  static bool is_stopped(const std::string& pid) {
    std::ifstream status(fmt::format("/proc/{}/status", pid));
    for (std::string word; status >> word;)
      if (word == "State:") return status >> word && word == "T";
    return false;
  }

  int stop(int port) const {
    auto world = join_pair(0, port);
    if (!world.ok()) return 1;
    auto transport = connect(*world, world->all_ranks(), "test");
    if (!transport.ok()) return 2;
    if (!exchange(*world->store, 0, kPair, {"process", std::to_string(getpid()), Deadline()}).ok()) return 3;
    if (!world->store->get("rank 1 has all that it needs", Deadline()).ok()) return 4;
    raise(SIGSTOP);
    return 5;
  }

  int give_up(int port) const {
    auto world = join_pair(1, port);
    if (!world.ok()) return 1;
    auto transport = connect(*world, world->all_ranks(), "test");
    if (!transport.ok()) return 2;
    const auto pids = exchange(*world->store, 1, kPair, {"process", "", Deadline()});
    if (!pids.ok()) return 3;
    if (!world->store->set("rank 1 has all that it needs", "").ok()) return 4;
    while (!is_stopped(pids->front())) std::this_thread::yield();
    (*transport)->abort(error(Code::kAborted, "enough"));
    char byte = 0;
    RecvRequest never{.peer = 0, .into = &byte, .n_bytes = 1};
    (*transport)->recv(never);
    if ((*transport)->poll(never) != Poll::kFailed) return 5;
    if ((*transport)->failure().message != "enough") return 6;
    _exit(0);  // a goodbye to the store is another matter
  }
};
INSTANTIATE_TEST_SUITE_P(Rows, StoppedStore,
                         testing::Values(Row{"shm", "shm", 1}, Row{"ucx", "ucx", 1}, Row{"tcp", "tcp", 1},
                                         Row{"two_hosts", "auto", 2}),
                         [](const auto& row) { return row.param.name; });

TEST_P(StoppedStore, HoldsNoAbortUp) {
  const int port = free_port();
  ChildProcess aborts([this, port] { return give_up(port); });
  ChildProcess stops([this, port] { return stop(port); });
  EXPECT_EQ(aborts.wait(), 0);
}

}  // namespace
}  // namespace tern
