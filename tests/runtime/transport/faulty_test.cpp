#include "runtime/transport/faulty.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/transport/ranks.h"

namespace tern {
namespace {

using testing::HasSubstr;

TEST(FaultSpec, IsReadFromItsList) {
  EXPECT_EQ(parse_faults("").value(), FaultSpec());
  const FaultSpec all = {.seed = 7,
                         .rank = 2,
                         .delay = 0.5,
                         .delay_polls = 9,
                         .stall = 0.25,
                         .stall_polls = 3,
                         .drop = 0.001,
                         .cut = 5,
                         .hole = 6};
  EXPECT_EQ(parse_faults("seed=7,rank=2,delay=0.5:9,stall=0.25:3,drop=0.001,cut=5,hole=6").value(), all);
  EXPECT_EQ(parse_faults("delay=0.1").value().delay_polls, FaultSpec().delay_polls);
}

TEST(FaultSpec, NamesTheEntryThatIsWrong) {
  const auto message = [](std::string_view text) {
    const auto spec = parse_faults(text);
    return spec.ok() ? std::string("no error") : spec.error().message;
  };
  EXPECT_THAT(message("dealy=0.1"), HasSubstr("did you mean \"delay\"?"));
  EXPECT_THAT(message("delay=1.5"), HasSubstr("\"delay=1.5\" is not a probability"));
  EXPECT_THAT(message("delay=nan"), HasSubstr("\"delay=nan\""));
  EXPECT_THAT(message("drop=0.1:5"), HasSubstr("\"drop=0.1:5\""));
  EXPECT_THAT(message("cut=-1"), HasSubstr("\"cut=-1\""));
  EXPECT_THAT(message("seed"), HasSubstr("\"seed\""));
  EXPECT_THAT(message("stall=0.1:x"), HasSubstr("\"stall=0.1:x\""));
}

Setup inproc_with(const std::string& faults) {
  return {"inproc with " + faults, [faults](World& world) { world.config.faults = faults; },
          [](const World& world) { return connect(world, world.all_ranks(), "test"); }};
}

// Sends `n` messages of 8 bytes from rank 0 to rank 1, one after the other; the number of those that came
// through.
int exchange_messages(RankUnderTest& self, int n, Deadline deadline) {
  uint64_t bytes = 0;
  for (int i = 0; i < n; ++i) {
    SendRequest send;
    send.peer = 1;
    send.data = &bytes;
    send.n_bytes = sizeof bytes;
    RecvRequest receive;
    receive.peer = 0;
    receive.into = &bytes;
    receive.n_bytes = sizeof bytes;
    if (self.rank() == 0)
      self.transport->send(send);
    else
      self.transport->recv(receive);
    Poll poll = Poll::kPending;
    while (poll == Poll::kPending && !deadline.passed()) {
      poll = self.rank() == 0 ? self.transport->poll(send) : self.transport->poll(receive);
    }
    if (poll != Poll::kDone) return i;
    if (self.rank() == 1) self.transport->release(receive);
  }
  return n;
}

TEST(Faulty, CutsTheConnectionAtTheGivenSendAndNamesThePeer) {
  run_ranks(inproc_with("rank=0,cut=4"), 2, [](RankUnderTest& self) {
    const int n = exchange_messages(self, 10, Deadline());
    if (self.rank() == 0)
      EXPECT_EQ(n, 3);
    else
      EXPECT_LE(n, 3);
    EXPECT_EQ(self.transport->failure().code, Code::kPeerLost);
    EXPECT_EQ(self.transport->failure().rank, 1);
    EXPECT_THAT(self.transport->failure().message, HasSubstr("TERN_FAULTS"));
  });
}

TEST(Faulty, LetsMessagesVanishIntoAHoleAsIfTheyWereSent) {
  run_ranks(inproc_with("rank=0,hole=4"), 2, [](RankUnderTest& self) {
    if (self.rank() == 0)
      EXPECT_EQ(exchange_messages(self, 10, Deadline()), 10);
    else
      EXPECT_EQ(exchange_messages(self, 10, Deadline::after(Seconds(0.2))), 3);
  });
}

TEST(Faulty, DropsConnectionsByTheSeed) {
  const auto n_before_drop = [](const std::string& faults) {
    int n = 0;
    run_ranks(inproc_with(faults), 2, [&](RankUnderTest& self) {
      const int mine = exchange_messages(self, 500, Deadline());
      if (self.rank() == 0) n = mine;
    });
    return n;
  };
  const int first = n_before_drop("seed=1,rank=0,drop=0.05");
  EXPECT_LT(first, 500);
  EXPECT_EQ(n_before_drop("seed=1,rank=0,drop=0.05"), first);
  EXPECT_NE(n_before_drop("seed=2,rank=0,drop=0.05"), first);
}

TEST(Faulty, MisbehavesOnTheGivenRankOnly) {
  run_ranks(inproc_with("rank=1,cut=1"), 2,
            [](RankUnderTest& self) { EXPECT_EQ(exchange_messages(self, 10, Deadline()), 10); });
}

TEST(Faulty, RefusesABadListBeforeItConnects) {
  Config config;
  config.faults = "delay=2";
  const World world = World::in_process_world(1, config).value().front();
  const auto transport = connect(world, world.all_ranks(), "test");
  ASSERT_FALSE(transport.ok());
  EXPECT_EQ(transport.error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace tern
