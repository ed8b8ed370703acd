// What is special to the transport over TCP sockets.
#include "runtime/transport/tcp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <barrier>
#include <deque>

#include "runtime/bootstrap/fields.h"
#include "runtime/bootstrap/socket.h"
#include "runtime/transport/tcp_door.h"
#include "tests/runtime/transport/ranks.h"

namespace tern {
namespace {

constexpr Seconds kPatience{60};

void run_two(const std::function<void(RankUnderTest&)>& body) {
  run_ranks(setup_of("tcp"), 2, body);
}

SendRequest sending(int peer, std::span<const std::byte> bytes, uint64_t number) {
  SendRequest request;
  request.peer = peer;
  request.data = bytes.data();
  request.n_bytes = bytes.size();
  request.envelope = {number, bytes.size()};
  return request;
}

RecvRequest receiving(int peer, std::span<std::byte> into) {
  RecvRequest request;
  request.peer = peer;
  request.into = into.data();
  request.n_bytes = into.size();
  return request;
}

TEST(Tcp, GivesReceivesThatArePostedLateWhatWasSentInTheOrderSent) {
  constexpr int kMessages = 60;
  const auto size_of_message = [](int number) { return static_cast<size_t>(number * 131 % 3001); };
  std::barrier all_is_sent(2);
  run_two([&](RankUnderTest& self) {
    if (self.rank() == 0) {
      for (int number = 0; number < kMessages; ++number) {
        const auto bytes = payload(0, 1, number, size_of_message(number));
        SendRequest request = sending(1, bytes, static_cast<uint64_t>(number));
        self.send(request);
        ASSERT_EQ(self.wait(request), Poll::kDone) << "message " << number;
      }
      all_is_sent.arrive_and_wait();
      return;
    }
    all_is_sent.arrive_and_wait();
    for (int number = 0; number < kMessages;) {  // one, two, three... posted at a time
      std::deque<std::vector<std::byte>> memory;
      std::deque<RecvRequest> requests;
      for (int n = 0; n <= number / 6 && number + n < kMessages; ++n) {
        memory.emplace_back(size_of_message(number + n));
        self.transport->recv(requests.emplace_back(receiving(0, memory.back())));
      }
      for (size_t i = 0; i < requests.size(); ++i, ++number) {
        ASSERT_EQ(self.wait(requests[i]), Poll::kDone) << "message " << number;
        EXPECT_EQ(requests[i].envelope.call, static_cast<uint64_t>(number));
        EXPECT_TRUE(memory[i] == payload(0, 1, number, size_of_message(number))) << "message " << number;
      }
    }
  });
}

TEST(Tcp, CarriesMoreThanAnyBufferHoldsBothWaysAtOnceThoughBothWaitForTheirSendFirst) {
  constexpr size_t kBytes = size_t{64} << 20;
  const auto byte_at = [](int from, size_t i) { return static_cast<std::byte>(i * 7 + i / 4099 + from); };
  run_two([&](RankUnderTest& self) {
    std::vector<std::byte> out(kBytes);
    std::vector<std::byte> in(kBytes);
    for (size_t i = 0; i < kBytes; ++i) out[i] = byte_at(self.rank(), i);
    RecvRequest recv = receiving(self.next(), in);
    SendRequest send = sending(self.next(), out, 0);
    self.transport->recv(recv);
    self.send(send);
    ASSERT_EQ(self.wait(send), Poll::kDone) << self.transport->failure().to_string();
    ASSERT_EQ(self.wait(recv), Poll::kDone) << self.transport->failure().to_string();
    for (size_t i = 0; i < kBytes; ++i) ASSERT_EQ(in[i], byte_at(self.next(), i)) << "byte " << i;
  });
}

TEST(Tcp, TellsARankThatWaitsForOneWhichLeftWithoutEverHavingSent) {
  std::vector<std::byte> byte(1);
  run_two([&](RankUnderTest& self) {
    if (self.rank() == 1) {
      RecvRequest recv = receiving(0, byte);
      self.transport->recv(recv);
      ASSERT_EQ(self.wait(recv), Poll::kDone);
      self.transport.reset();
      return;
    }
    std::vector<std::byte> mine(1);
    SendRequest send = sending(1, mine, 0);
    self.send(send);
    ASSERT_EQ(self.wait(send), Poll::kDone);
    RecvRequest never = receiving(1, mine);
    self.transport->recv(never);
    EXPECT_EQ(self.wait(never), Poll::kFailed);
    EXPECT_EQ(self.transport->failure().code, Code::kPeerLost);
    EXPECT_EQ(self.transport->failure().rank, 1);
    EXPECT_THAT(self.transport->failure().message, testing::HasSubstr("closed its end"));
  });
}

bool is_closed(const Fd& fd) {
  char byte = 0;
  const Status read = receive_all(fd.get(), &byte, 1, Deadline::after(kPatience));
  return !read.ok() && read.error().code == Code::kPeerLost;
}

TEST(Tcp, GoesOnWhenStrangersConnect) {
  run_two([](RankUnderTest& self) {
    const auto offer = self.world.store->get("test/offer/1", Deadline::after(kPatience));
    ASSERT_TRUE(offer.ok());
    FieldReader reader(*offer);
    const std::string address(*reader.text());
    const int port = *reader.number<int32_t>();
    Fd silent;
    Fd loud;
    if (self.rank() == 0) {
      silent = connect_to(address, port, Deadline::after(kPatience)).value();
      loud = connect_to(address, port, Deadline::after(kPatience)).value();
      ASSERT_TRUE(send_all(loud.get(), std::string(1000, 'x'), Deadline::after(kPatience)).ok());
    }
    for (int number = 0; number < 10; ++number) {
      std::vector<std::byte> in(5000);
      const auto out = payload(self.rank(), self.next(), number, in.size());
      RecvRequest recv = receiving(self.next(), in);
      SendRequest send = sending(self.next(), out, 0);
      self.transport->recv(recv);
      self.send(send);
      ASSERT_EQ(self.wait(recv), Poll::kDone) << self.transport->failure().to_string();
      ASSERT_EQ(self.wait(send), Poll::kDone) << self.transport->failure().to_string();
      EXPECT_TRUE(in == payload(self.next(), self.rank(), number, in.size()));
    }
    if (self.rank() == 0) {
      EXPECT_TRUE(is_closed(loud));
    }
  });
}

class TcpDoor : public testing::Test {
 protected:
  TcpDoor() {
    Fd listener = listen_on("127.0.0.1", 0).value();
    port_ = port_of(listener);
    for (const char* secret : {"of 0", "of 1"}) keys_.push_back(auth_key(secret));
    door_.emplace(std::move(listener), keys_);
  }

  Fd come(std::string_view words) const {
    Fd fd = connect_to("127.0.0.1", port_, Deadline::after(kPatience)).value();
    EXPECT_TRUE(send_all(fd.get(), words, Deadline::after(kPatience)).ok());
    return fd;
  }
  std::optional<tcp::Door::Guest> wait_for_guest() {
    const Deadline deadline = Deadline::after(kPatience);
    while (!deadline.passed()) {
      auto guest = door_->admit();
      if (guest.ok() && *guest) return std::move(*guest);
    }
    return std::nullopt;
  }

  int port_ = 0;
  std::vector<AuthKey> keys_;
  std::optional<tcp::Door> door_;
};

TEST_F(TcpDoor, LetsInWhoKnowsTheKeyOfTheMemberAndReadsNoFurther) {
  const Fd fd = come(tcp::greeting(1, keys_[1]) + "!");
  const auto guest = wait_for_guest();
  ASSERT_TRUE(guest);
  EXPECT_EQ(guest->member, 1U);
  char byte = 0;
  ASSERT_TRUE(receive_all(guest->fd.get(), &byte, 1, Deadline::after(kPatience)).ok());
  EXPECT_EQ(byte, '!');
}

TEST_F(TcpDoor, ClosesOnWhoeverDoesNotAndOnWhoeverComesTwice) {
  AuthKey nearly = keys_[1];
  nearly.back() ^= 1;
  const Fd first = come(tcp::greeting(0, keys_[0]));
  ASSERT_TRUE(wait_for_guest());
  const std::vector<std::string> words = {tcp::greeting(1, nearly), tcp::greeting(0, keys_[1]),
                                          tcp::greeting(2, keys_[1]), tcp::greeting(0, keys_[0]),
                                          std::string(tcp::kGreetingBytes, 'x')};
  std::deque<Fd> refused;
  for (const std::string& said : words) refused.push_back(come(said));
  const Fd last = come(tcp::greeting(1, keys_[1]));
  const auto guest = wait_for_guest();
  ASSERT_TRUE(guest);
  EXPECT_EQ(guest->member, 1U);
  for (size_t i = 0; i < words.size(); ++i) EXPECT_TRUE(is_closed(refused[i])) << "greeting " << i;
}

}  // namespace
}  // namespace tern
