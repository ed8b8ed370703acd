#include "tests/runtime/transport/ranks.h"

#include <gtest/gtest.h>

#include <barrier>
#include <numeric>
#include <thread>

namespace tern {
namespace {

constexpr Seconds kPatience{60};

Setup setup_of(const TransportInfo& row) {
  const auto connect = [&row](const World& world) {
    std::vector<int> all(static_cast<size_t>(world.size));
    std::iota(all.begin(), all.end(), 0);
    return row.connect(world, all, "test");
  };
  return {std::string(row.name), [](World&) {}, connect};
}

// Even ranks on one host, odd ranks on another, though all are here.
void put_on_two_hosts(World& world) {
  world.in_process = false;  // so that auto does not see through it
  world.host_id = fmt::format("host {}", world.rank % 2);
  for (int rank = 0; rank < world.size; ++rank) {
    world.host_ids[static_cast<size_t>(rank)] = fmt::format("host {}", rank % 2);
  }
}

Result<std::unique_ptr<Transport>> connect_test(const World& world) {
  return connect(world, world.all_ranks(), "test");
}

}  // namespace

Setup setup_of(std::string_view transport) {
  return setup_of(*find_transport(transport).value());
}

std::vector<Setup> every_setup() {
  std::vector<Setup> setups;
  const World world = World::in_process_world(1, Config()).value().front();
  for (const TransportInfo& row : transports()) {
    std::string why_not;
    if (!row.domain(world, &why_not).empty()) setups.push_back(setup_of(row));
  }
  setups.push_back({"two_hosts", put_on_two_hosts, connect_test});
  const auto with_faults = [](World& arranged) {
    put_on_two_hosts(arranged);
    arranged.config.faults = "seed=3,delay=0.5:30,stall=0.02:100";
  };
  setups.push_back({"two_hosts_faulty", with_faults, connect_test});
  return setups;
}

void run_ranks(const Setup& setup, int n, const std::function<void(RankUnderTest&)>& body) {
  Config config;
  config.heap_bytes = uint64_t{32} << 20;
  config.bootstrap_timeout = kPatience;
  std::vector<World> worlds = World::in_process_world(n, config).value();
  for (World& world : worlds) setup.arrange(world);
  std::barrier all_have_ended(n);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < n; ++rank) {
    threads.emplace_back([&, rank] {
      RankUnderTest self{worlds[static_cast<size_t>(rank)], nullptr, {}};
      auto transport = setup.connect(self.world);
      EXPECT_TRUE(transport.ok()) << "rank " << rank << ": " << transport.error().to_string();
      if (transport.ok()) {
        self.transport = std::move(*transport);
        body(self);
      }
      all_have_ended.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void RankUnderTest::send(SendRequest& request) {
  transport->send(request);
  sends.push_back(&request);
}

template <class Request>
Poll RankUnderTest::wait_for(Request& request) {
  const auto poll_all = [&] {
    std::erase_if(sends, [&](SendRequest* send) { return transport->poll(*send) == Poll::kDone; });
    return transport->poll(request);
  };
  const Deadline deadline = Deadline::after(kPatience);
  while (!deadline.passed()) {
    Poll poll = poll_all();
    if (poll != Poll::kPending) return poll;
    const uint64_t token = transport->arm();
    poll = poll_all();
    if (poll != Poll::kPending) return poll;
    transport->sleep(token, deadline.left());
  }
  return Poll::kPending;
}

Poll RankUnderTest::wait(SendRequest& request) {
  const Poll poll = wait_for(request);
  std::erase(sends, &request);  // the caller may drop it now
  return poll;
}
Poll RankUnderTest::wait(RecvRequest& request) {
  return wait_for(request);
}

std::vector<std::byte> payload(int from, int to, int number, size_t n_bytes) {
  std::vector<std::byte> bytes(n_bytes);
  uint64_t state = 0x9e3779b97f4a7c15u * static_cast<uint64_t>(1 + from * 1009 + to * 31 + number * 65537);
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

}  // namespace tern
