// The contract of transport.h, over every row of the registry and the mixtures of rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstring>
#include <deque>
#include <thread>

#include "tests/runtime/transport/ranks.h"

namespace tern {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::byte>;

struct Case {
  Setup setup;
  int n;
};

std::vector<Case> every_case() {
  std::vector<Case> cases;
  for (const Setup& setup : every_setup()) {
    for (const int n : {1, 2, 3, 5}) cases.push_back({setup, n});
  }
  return cases;
}

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.setup.name << " with " << c.n << " ranks";
}

class EveryTransport : public testing::TestWithParam<Case> {
 protected:
  void run(const std::function<void(RankUnderTest&)>& body) {
    run_ranks(GetParam().setup, GetParam().n, body);
  }
};
INSTANTIATE_TEST_SUITE_P(Rows, EveryTransport, testing::ValuesIn(every_case()), [](const auto& row) {
  return fmt::format("{}_p{}", row.param.setup.name, row.param.n);
});

/// A send with its payload; stays where it is until it is done.
struct Sending {
  Bytes bytes;
  SendRequest request;

  Sending(const RankUnderTest& self, int peer, int number, size_t n_bytes)
      : bytes(payload(self.rank(), peer, number, n_bytes)) {
    request.peer = peer;
    request.data = bytes.data();
    request.n_bytes = n_bytes;
    request.envelope = {static_cast<uint64_t>(number), n_bytes};
  }
};

struct Receiving {
  Bytes into;
  RecvRequest request;

  Receiving(int peer, size_t n_bytes) : into(n_bytes) {
    request.peer = peer;
    request.into = into.data();
    request.n_bytes = n_bytes;
  }
  Bytes data() const {
    const auto* first = static_cast<const std::byte*>(request.data);
    return {first, first + request.n_bytes};
  }
};

// Waits for a receive and checks every byte of it.
void expect_message(RankUnderTest& self, Receiving& receiving, int number) {
  RecvRequest& request = receiving.request;
  const size_t n_bytes = request.n_bytes;
  ASSERT_EQ(self.wait(request), Poll::kDone) << self.transport->failure().to_string();
  ASSERT_EQ(request.n_bytes, n_bytes);
  ASSERT_NE(request.data, nullptr);
  EXPECT_EQ(request.envelope, (Envelope{static_cast<uint64_t>(number), n_bytes}));
  EXPECT_TRUE(receiving.data() == payload(request.peer, self.rank(), number, n_bytes))
      << n_bytes << " bytes from rank " << request.peer << ", message " << number;
}

void expect_done(RankUnderTest& self, SendRequest& request) {
  ASSERT_EQ(self.wait(request), Poll::kDone) << self.transport->failure().to_string();
}

constexpr size_t kSizes[] = {
    0, 1, 3, 95, 96, 97, 4095, 4096, 4097, 8191, 65537, 262144, (size_t{1} << 20) + 5};

TEST_P(EveryTransport, CarriesEverySizeFromEveryRankToEveryOther) {
  run([](RankUnderTest& self) {
    int number = 0;
    for (const size_t n_bytes : kSizes) {
      std::deque<Sending> sends;
      std::deque<Receiving> receives;
      for (int peer = 0; peer < self.size(); ++peer) {
        if (peer == self.rank()) continue;
        self.transport->recv(receives.emplace_back(peer, n_bytes).request);
        self.send(sends.emplace_back(self, peer, number, n_bytes).request);
      }
      for (Receiving& receiving : receives) {
        expect_message(self, receiving, number);
        self.transport->release(receiving.request);
      }
      for (Sending& sending : sends) expect_done(self, sending.request);
      ++number;
    }
  });
}

TEST(AutoTransport, JoinsRanksOfAHostByShmAndHostsByUcxWhereThereIsRdmaElseByTcp) {
  const auto setups = every_setup();
  const auto two_hosts =
      std::find_if(setups.begin(), setups.end(), [](const auto& setup) { return setup.name == "two_hosts"; });
  ASSERT_NE(two_hosts, setups.end());
  const TransportInfo& ucx = *find_transport("ucx").value();
  run_ranks(*two_hosts, 4, [&](RankUnderTest& self) {
    std::string why_not;
    const bool takes_ucx = !ucx.domain(self.world, &why_not).empty() && ucx.drawback().empty();
    EXPECT_EQ(self.transport->name(), takes_ucx ? "shm+ucx" : "shm+tcp") << "rank " << self.rank();
  });
}

TEST_P(EveryTransport, KeepsTheOrderOfABurstThatNobodyExpectedYet) {
  constexpr int kMessages = 120;  // more than any ring holds
  const auto size_of_message = [](int number) { return kSizes[static_cast<size_t>(number) % 12]; };
  run([&](RankUnderTest& self) {
    if (self.size() == 1) return;
    std::deque<Sending> sends;
    for (int number = 0; number < kMessages; ++number) {
      self.send(sends.emplace_back(self, self.next(), number, size_of_message(number)).request);
    }
    for (int number = 0; number < kMessages; ++number) {
      Receiving receiving(self.previous(), size_of_message(number));
      self.transport->recv(receiving.request);
      expect_message(self, receiving, number);
      self.transport->release(receiving.request);
    }
    for (Sending& sending : sends) expect_done(self, sending.request);
  });
}

TEST_P(EveryTransport, KeepsViewsWholeUntilTheyAreReleased) {
  constexpr int kViews = 6;
  run([](RankUnderTest& self) {
    if (self.size() == 1) return;
    for (const size_t n_bytes : {size_t{40}, size_t{3000}, size_t{50000}, size_t{300000}}) {
      std::deque<Sending> sends;
      std::deque<Receiving> receives;
      for (int number = 0; number < kViews; ++number) {
        self.transport->recv(receives.emplace_back(self.previous(), n_bytes).request);
        self.send(sends.emplace_back(self, self.next(), number, n_bytes).request);
      }
      for (int number = 0; number < kViews; ++number) {
        expect_message(self, receives[static_cast<size_t>(number)], number);
      }
      for (int number = 0; number < kViews; ++number) {  // all have come: none may have spoilt another
        EXPECT_TRUE(receives[static_cast<size_t>(number)].data() ==
                    payload(self.previous(), self.rank(), number, n_bytes));
      }
      for (Receiving& receiving : receives) self.transport->release(receiving.request);
      for (Sending& sending : sends) expect_done(self, sending.request);
    }
  });
}

TEST_P(EveryTransport, ReadsHeapMemoryToo) {
  run([](RankUnderTest& self) {
    if (self.size() == 1) return;
    for (const size_t n_bytes : {size_t{100}, size_t{5000}, size_t{3} << 20}) {
      const Allocation memory = allocate(self.world, n_bytes).value();
      Sending sending(self, self.next(), 1, n_bytes);
      std::memcpy(memory.data(), sending.bytes.data(), n_bytes);
      sending.request.data = memory.data();
      Receiving receiving(self.previous(), n_bytes);
      self.transport->recv(receiving.request);
      self.send(sending.request);
      expect_message(self, receiving, 1);
      self.transport->release(receiving.request);
      expect_done(self, sending.request);
    }
  });
}

TEST_P(EveryTransport, ReportsAMessageOfAnotherSizeAndGoesOn) {
  run([](RankUnderTest& self) {
    if (self.size() == 1) return;
    for (const size_t n_sent : {size_t{8}, size_t{2000}, size_t{20000}, size_t{2} << 20}) {
      for (const bool expects_first : {true, false}) {
        Receiving receiving(self.previous(), 1000);
        Sending wrong(self, self.next(), 7, n_sent);
        Sending right(self, self.next(), 8, 1000);
        if (expects_first) self.transport->recv(receiving.request);
        self.send(wrong.request);
        self.send(right.request);
        if (!expects_first) self.transport->recv(receiving.request);
        ASSERT_EQ(self.wait(receiving.request), Poll::kDone);
        EXPECT_EQ(receiving.request.data, nullptr);
        EXPECT_EQ(receiving.request.n_bytes, n_sent);
        EXPECT_EQ(receiving.request.envelope, (Envelope{7, n_sent}));
        self.transport->release(receiving.request);
        Receiving second(self.previous(), 1000);
        self.transport->recv(second.request);
        expect_message(self, second, 8);
        self.transport->release(second.request);
        expect_done(self, wrong.request);
        expect_done(self, right.request);
      }
    }
  });
}

TEST_P(EveryTransport, WakesASleepingReceiver) {
  run([](RankUnderTest& self) {
    if (self.size() == 1) return;
    // A token that goes round: everyone but one rank sleeps at any time.
    for (int round = 0; round < 20; ++round) {
      Receiving receiving(self.previous(), 64);
      self.transport->recv(receiving.request);
      Sending sending(self, self.next(), round, 64);
      if (self.rank() == 0) self.send(sending.request);
      expect_message(self, receiving, round);
      self.transport->release(receiving.request);
      if (self.rank() != 0) self.send(sending.request);
      expect_done(self, sending.request);
    }
  });
}

TEST_P(EveryTransport, FailsAllRanksWhenAThreadOfOneAborts) {
  run([](RankUnderTest& self) {
    const int aborting = self.size() - 1;
    if (self.size() == 1) return;
    Receiving never(self.next(), 100);
    self.transport->recv(never.request);
    std::thread other;
    if (self.rank() == aborting) {
      other =
          std::thread([&] { self.transport->abort(error_at(aborting, Code::kAborted, "enough of this")); });
    }
    EXPECT_EQ(self.wait(never.request), Poll::kFailed);
    EXPECT_EQ(self.transport->failure().code, Code::kAborted);
    EXPECT_EQ(self.transport->failure().rank, aborting);
    EXPECT_THAT(self.transport->failure().message, HasSubstr("enough of this"));
    if (other.joinable()) other.join();
    Sending late(self, self.next(), 0, 8);
    self.send(late.request);
    EXPECT_EQ(self.transport->poll(late.request), Poll::kFailed);
  });
}

TEST_P(EveryTransport, FailsWhoWaitsForARankThatLeft) {
  // The first rank to notice tells the others, who must have their message by then.
  std::barrier those_who_stay(std::max(1, GetParam().n - 1));
  run([&](RankUnderTest& self) {
    if (self.size() == 1) return;
    const int leaver = self.size() - 1;
    if (self.rank() == leaver) {  // says one thing to each, and goes
      std::deque<Sending> sends;
      for (int peer = 0; peer < leaver; ++peer) {
        self.send(sends.emplace_back(self, peer, 0, 5000).request);
      }
      for (Sending& sending : sends) expect_done(self, sending.request);
      self.transport.reset();
      return;
    }
    Receiving first(leaver, 5000);
    Receiving second(leaver, 5000);
    self.transport->recv(first.request);
    self.transport->recv(second.request);
    expect_message(self, first, 0);
    self.transport->release(first.request);
    those_who_stay.arrive_and_wait();
    EXPECT_EQ(self.wait(second.request), Poll::kFailed);
    EXPECT_EQ(self.transport->failure().code, Code::kPeerLost);
    EXPECT_EQ(self.transport->failure().rank, leaver);
  });
}

TEST_P(EveryTransport, EndsInGoodOrderWhenOneRankIsThroughBeforeTheOthersHaveRead) {
  run([](RankUnderTest& self) {
    if (self.size() == 1) return;
    Sending sending(self, self.next(), 0, 2000);
    self.send(sending.request);
    expect_done(self, sending.request);
    Receiving receiving(self.previous(), 2000);
    self.transport->recv(receiving.request);
    expect_message(self, receiving, 0);
    self.transport->release(receiving.request);
    self.transport.reset();
  });
}

}  // namespace
}  // namespace tern
