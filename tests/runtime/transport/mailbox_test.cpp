// Messages through the mailbox core: order, sizes, views, copies, back pressure.
#include "runtime/transport/mailbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tests/runtime/transport/mailbox_fixture.h"

namespace tern {
namespace {

using mailbox::kRingSlots;
using ::testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Local, MailboxTest, kMailboxTransports, name_of_row);

TEST_P(MailboxTest, MessagesOfEverySizeArriveFromEveryKindOfMemory) {
  connect(2);
  size_t seed = 0;
  for (const size_t n : kSizes) {
    for (const bool from_heap : {false, true}) {
      for (const size_t misaligned : {0, 0, 3, 3}) {  // once computed with, once only landing
        Bytes own(n + misaligned);
        std::byte* data = (from_heap ? heap_memory(0, n + misaligned) : own.data()) + misaligned;
        fill(data, n, ++seed);
        Bytes into(n);
        auto send = send_request(1, data, n, {.call = seed, .count = n});
        send.lands = seed % 2 == 0;
        auto recv = recv_request(0, into.data(), n);
        at(1).recv(recv);
        at(0).send(send);
        finish(0, send, 1, recv);
        EXPECT_TRUE(holds(recv, n, seed)) << n << " bytes, heap " << from_heap << ", off by " << misaligned;
        EXPECT_EQ(recv.envelope, (Envelope{.call = seed, .count = n}));
        at(1).release(recv);
        EXPECT_EQ(at(0).poll(send), Poll::kDone);
        if (from_heap) worlds_[0].heap->free(data - misaligned);
      }
    }
  }
}

TEST_P(MailboxTest, ManyMessagesPostedAheadArriveInOrder) {
  connect(2);
  constexpr size_t kMessages = 300;  // the ring wraps many times
  std::vector<Bytes> data;
  data.reserve(kMessages);
  std::vector<SendRequest> sends(kMessages);
  std::vector<RecvRequest> recvs(kMessages);
  std::vector<Bytes> into(kMessages);
  const auto size_of = [](size_t i) { return kSizes[i % (kSizes.size() - 4)]; };
  for (size_t i = 0; i < kMessages; ++i) {
    data.push_back(pattern(size_of(i), i));
    into[i].resize(size_of(i));
    sends[i] = send_request(1, data[i].data(), data[i].size(), {.call = i});
    recvs[i] = recv_request(0, into[i].data(), data[i].size());
    at(0).send(sends[i]);
  }
  for (RecvRequest& recv : recvs) at(1).recv(recv);
  for (size_t i = 0; i < kMessages; ++i) {
    finish(0, sends[i], 1, recvs[i]);
    EXPECT_TRUE(holds(recvs[i], size_of(i), i)) << "message " << i;
    EXPECT_EQ(recvs[i].envelope.call, i);
    at(1).release(recvs[i]);
    EXPECT_EQ(at(0).poll(sends[i]), Poll::kDone);
  }
}

TEST_P(MailboxTest, AReceivePolledOutOfOrderStillGetsItsOwnMessage) {
  connect(2);
  std::array<uint32_t, 3> values = {7, 8, 9};
  std::array<SendRequest, 3> sends;
  std::array<RecvRequest, 3> recvs;
  for (size_t i = 0; i < 3; ++i) {
    recvs[i] = recv_request(0, nullptr, 4);
    at(1).recv(recvs[i]);
    sends[i] = send_request(1, &values[i], 4);
    at(0).send(sends[i]);
  }
  for (const size_t i : {2, 0, 1}) {
    ASSERT_EQ(at(1).poll(recvs[i]), Poll::kDone);
    EXPECT_EQ(std::memcmp(recvs[i].data, &values[i], 4), 0);
  }
}

TEST_P(MailboxTest, AFullRingHoldsFurtherSendsBackUntilAViewIsReleased) {
  connect(2);
  std::vector<uint32_t> values(kRingSlots + 2);
  std::vector<SendRequest> sends(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<uint32_t>(i);
    sends[i] = send_request(1, &values[i], 4);
    at(0).send(sends[i]);
    EXPECT_EQ(at(0).poll(sends[i]), i < kRingSlots ? Poll::kDone : Poll::kPending) << i;
  }
  std::vector<RecvRequest> recvs(values.size());
  for (RecvRequest& recv : recvs) at(1).recv(recv = recv_request(0, nullptr, 4));
  ASSERT_EQ(at(1).poll(recvs[0]), Poll::kDone);
  ASSERT_EQ(at(1).poll(recvs[1]), Poll::kDone);
  EXPECT_EQ(at(0).poll(sends[kRingSlots]), Poll::kPending) << "received but not released";
  at(1).release(recvs[1]);
  EXPECT_EQ(at(0).poll(sends[kRingSlots]), Poll::kPending) << "its slot is the first message's";
  at(1).release(recvs[0]);
  EXPECT_EQ(at(0).poll(sends[kRingSlots + 1]), Poll::kDone) << "both slots are free now";
  EXPECT_EQ(at(0).poll(sends[kRingSlots]), Poll::kDone);
  for (size_t i = 2; i < recvs.size(); ++i) {
    ASSERT_EQ(at(1).poll(recvs[i]), Poll::kDone);
    EXPECT_EQ(std::memcmp(recvs[i].data, &values[i], 4), 0) << i;
    at(1).release(recvs[i]);
  }
}

TEST_P(MailboxTest, HeapMemoryIsReadInPlaceAndTheSendIsDoneWhenTheViewIsReleased) {
  connect(2);
  constexpr size_t kBytes = 100'000;
  std::byte* data = heap_memory(0, kBytes);
  fill(data, kBytes, 1);
  EXPECT_TRUE(at(0).shares(data, kBytes));
  auto send = send_request(1, data, kBytes);
  auto recv = recv_request(0, nullptr, kBytes);
  at(0).send(send);
  at(1).recv(recv);
  ASSERT_EQ(at(1).poll(recv), Poll::kDone);
  EXPECT_EQ(at(0).poll(send), Poll::kPending);
  fill(data, kBytes, 2);
  EXPECT_TRUE(holds(recv, kBytes, 2)) << "the view does not show what the sender writes";
  at(1).release(recv);
  EXPECT_EQ(at(0).poll(send), Poll::kDone);
}

TEST_P(MailboxTest, CopiedPayloadsDoNotWaitForTheReceiver) {
  connect(2);
  for (const size_t n : {size_t{10}, size_t{4096}, kMiB}) {
    Bytes data = pattern(n, n);
    if (at(0).shares(data.data(), n)) continue;
    auto send = send_request(1, data.data(), n);
    at(0).send(send);
    EXPECT_EQ(at(0).poll(send), Poll::kDone);
    std::fill(data.begin(), data.end(), std::byte{0});
    auto recv = recv_request(0, nullptr, n);
    at(1).recv(recv);
    ASSERT_EQ(at(1).poll(recv), Poll::kDone);
    EXPECT_TRUE(holds(recv, n, n));
    at(1).release(recv);
  }
}

TEST_P(MailboxTest, ViewsMayBeReleasedInAnyOrder) {
  connect(2);
  constexpr size_t kBytes = 5000;
  std::vector<SendRequest> sends(6);
  std::vector<RecvRequest> recvs(sends.size());
  for (size_t i = 0; i < sends.size(); ++i) {
    std::byte* data = heap_memory(0, kBytes);
    fill(data, kBytes, i);
    at(0).send(sends[i] = send_request(1, data, kBytes));
    at(1).recv(recvs[i] = recv_request(0, nullptr, kBytes));
  }
  for (RecvRequest& recv : recvs) ASSERT_EQ(at(1).poll(recv), Poll::kDone);
  std::vector<bool> released(sends.size(), false);
  for (const size_t i : {3, 5, 0, 2, 1, 4}) {
    EXPECT_TRUE(holds(recvs[i], kBytes, i));
    at(1).release(recvs[i]);
    released[i] = true;
    for (size_t j = 0; j < sends.size(); ++j) {
      EXPECT_EQ(at(0).poll(sends[j]), released[j] ? Poll::kDone : Poll::kPending) << j << " after " << i;
    }
  }
}

TEST_P(MailboxTest, ARankThatDoesNotReadBlocksNoOther) {
  connect(5);
  for (const size_t n : {kMiB, size_t{4096}, size_t{8}}) {
    const Bytes data = pattern(n, n);
    std::vector<SendRequest> unread(200);
    for (size_t i = 0; i < unread.size(); ++i) {
      at(0).send(unread[i] = send_request(1 + static_cast<int>(i % 3), data.data(), n));
    }
    auto send = send_request(4, data.data(), n);
    auto recv = recv_request(0, nullptr, n);
    at(4).recv(recv);
    at(0).send(send);
    finish(0, send, 4, recv);
    EXPECT_TRUE(holds(recv, n, n));
    at(4).release(recv);
    for (size_t i = 0; i < unread.size(); ++i) {  // in the end they get theirs too
      const int to = 1 + static_cast<int>(i % 3);
      auto late = recv_request(0, nullptr, n);
      at(to).recv(late);
      finish(0, unread[i], to, late);
      at(to).release(late);
    }
  }
}

TEST_P(MailboxTest, ASmallMessageBehindALargeOneWaitsForAllItsPieces) {
  connect(2);
  constexpr size_t kBytes = kLargestMessage;  // more than all staging slots of a rank
  const Bytes data = pattern(kBytes, 3);
  const uint32_t value = 5;
  auto large = send_request(1, data.data(), kBytes);
  auto small = send_request(1, &value, 4);
  at(0).send(large);
  at(0).send(small);
  EXPECT_EQ(at(0).poll(small), at(0).shares(data.data(), kBytes) ? Poll::kDone : Poll::kPending);
  Bytes into(kBytes);
  auto first = recv_request(0, into.data(), kBytes);
  auto second = recv_request(0, nullptr, 4);
  at(1).recv(first);
  at(1).recv(second);
  finish(0, large, 1, first);
  EXPECT_TRUE(holds(first, kBytes, 3));
  at(1).release(first);
  finish(0, small, 1, second);
  EXPECT_EQ(std::memcmp(second.data, &value, 4), 0);
  EXPECT_EQ(at(0).poll(large), Poll::kDone);
}

TEST_P(MailboxTest, AMessageThatOnlyLandsComesInPiecesThatOverlap) {
  connect(2);
  constexpr size_t kPiece = size_t{64} << 10;
  for (const size_t n : {kPiece - 1, kPiece, kPiece + 1, 3 * kPiece, 40 * kPiece + 7}) {
    const Bytes data = pattern(n, n);
    Bytes into(n);
    auto send = send_request(1, data.data(), n);
    send.lands = true;
    auto recv = recv_request(0, into.data(), n);
    at(1).recv(recv);
    at(0).send(send);
    finish(0, send, 1, recv);
    EXPECT_TRUE(holds(recv, n, n)) << n;
    const bool is_copied = reads_remotely() || (n > kPiece && !at(0).shares(data.data(), n));
    EXPECT_EQ(recv.data == into.data(), is_copied) << n;
    at(1).release(recv);
  }
}

TEST_P(MailboxTest, AMessageReadOutOfItsSendersMemoryIsTheSendersAgainOnceItIsRead) {
  connect(2);
  if (!reads_remotely()) GTEST_SKIP() << "this row does not read memory of others through the kernel";
  constexpr size_t kBytes = 3 * kMiB + 1;
  Bytes data = pattern(kBytes, 1);
  Bytes into(kBytes);
  auto send = send_request(1, data.data(), kBytes);
  send.lands = true;
  at(0).send(send);
  EXPECT_EQ(at(0).poll(send), Poll::kPending) << "nobody has read it";
  fill(data.data(), kBytes, 2);
  auto recv = recv_request(0, into.data(), kBytes);
  at(1).recv(recv);
  finish(0, send, 1, recv);
  EXPECT_TRUE(holds(recv, kBytes, 2)) << "there is no earlier copy";
  EXPECT_EQ(at(0).poll(send), Poll::kDone) << "before the receiver releases what is its own";
}

TEST_P(MailboxTest, MemoryThatIsGoneBeforeItIsReadIsAnErrorOnBothEnds) {
  connect(2);
  if (!reads_remotely()) GTEST_SKIP() << "this row does not read memory of others through the kernel";
  void* gone = ::mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  auto send = send_request(1, gone, kMiB);
  send.lands = true;
  at(0).send(send);
  // Not unmapped: the next allocation could take its place.
  ASSERT_EQ(::mprotect(gone, kMiB, PROT_NONE), 0);
  Bytes into(kMiB);
  auto recv = recv_request(0, into.data(), kMiB);
  at(1).recv(recv);
  while (at(1).poll(recv) == Poll::kPending) {
  }
  EXPECT_EQ(at(1).poll(recv), Poll::kFailed);
  EXPECT_EQ(at(0).poll(send), Poll::kFailed);
  for (const int rank : {0, 1}) {
    EXPECT_EQ(at(rank).failure().code, Code::kIo);
    EXPECT_THAT(at(rank).failure().message,
                HasSubstr("rank 1 cannot read 1048576 bytes from the process of rank 0"));
  }
  ::munmap(gone, kMiB);
}

TEST_P(MailboxTest, AMessageOfAnotherSizeIsReportedAndTheNextOneArrives) {
  connect(2);
  for (const size_t n : kSizes) {
    const Bytes data = pattern(n, 4);
    const uint32_t value = 6;
    auto wrong = send_request(1, data.data(), n, {.call = 11, .count = n});
    auto right = send_request(1, &value, 4);
    Bytes into(n + 1);
    auto first = recv_request(0, into.data(), n + 1);
    auto second = recv_request(0, nullptr, 4);
    at(1).recv(first);
    at(1).recv(second);
    at(0).send(wrong);
    at(0).send(right);
    finish(0, wrong, 1, first);
    EXPECT_EQ(first.data, nullptr);
    EXPECT_EQ(first.n_bytes, n);
    EXPECT_EQ(first.envelope, (Envelope{.call = 11, .count = n}));
    finish(0, right, 1, second);
    EXPECT_EQ(std::memcmp(second.data, &value, 4), 0) << n;
    at(1).release(first);
    at(1).release(second);
    EXPECT_EQ(at(0).poll(wrong), Poll::kDone);
  }
}

TEST_P(MailboxTest, ARankMaySendToItself) {
  connect(2);
  const Bytes data = pattern(10 * kKiB, 5);
  auto send = send_request(1, data.data(), data.size());
  auto recv = recv_request(1, nullptr, data.size());
  at(1).send(send);
  at(1).recv(recv);
  finish(1, send, 1, recv);
  EXPECT_TRUE(holds(recv, data.size(), 5));
  at(1).release(recv);
}

TEST_P(MailboxTest, MembersMayBeAnyRanksOfTheWorldAndCommunicatorsDoNotMeet) {
  connect(7);
  auto all = std::move(ranks_);
  connect_members({1, 4, 6}, "some");
  const uint32_t in_all = 1;
  const uint32_t in_some = 2;
  auto send_all = send_request(6, &in_all, 4);
  auto send_some = send_request(6, &in_some, 4);
  all[4]->send(send_all);
  at(4).send(send_some);
  auto recv = recv_request(4, nullptr, 4);
  at(6).recv(recv);
  ASSERT_EQ(at(6).poll(recv), Poll::kDone);
  EXPECT_EQ(std::memcmp(recv.data, &in_some, 4), 0);
}

/// One rank's part of the test below.
class AllToAllPlayer {
 public:
  static constexpr int kRanks = 4;

  /// out[i]: memory to send to rank i from.
  AllToAllPlayer(Transport& transport, int self, std::vector<std::byte*> out)
      : transport_(transport), self_(self), out_(std::move(out)), into_(kRanks, Bytes(2 * kMiB)) {}

  void play_round(size_t round, size_t n) {
    for (size_t i = 0; i < kRanks; ++i) {
      const auto peer = static_cast<int>(i);
      recvs_[i] = {.peer = peer, .into = into_[i].data(), .n_bytes = n};
      transport_.recv(recvs_[i]);
      fill(out_[i], n, seed_of(self_, peer, round));
      sends_[i] = {.peer = peer, .data = out_[i], .n_bytes = n};
      transport_.send(sends_[i]);
    }
    sent_ = received_ = {};
    while (true) {
      const uint64_t token = transport_.arm();
      for (size_t i = 0; i < kRanks; ++i) advance(i, round, n);
      const auto all = [](const auto& flags) {
        return std::find(flags.begin(), flags.end(), false) == flags.end();
      };
      if (all(sent_) && all(received_)) return;
      transport_.sleep(token, std::chrono::hours(1));  // at once when one of the polls made progress
    }
  }

 private:
  static size_t seed_of(int from, int to, size_t round) {
    return static_cast<size_t>(from * 7 + to) + round * 13;
  }

  void advance(size_t i, size_t round, size_t n) {
    if (!sent_[i]) sent_[i] = transport_.poll(sends_[i]) != Poll::kPending;
    if (received_[i] || transport_.poll(recvs_[i]) == Poll::kPending) return;
    received_[i] = true;
    EXPECT_TRUE(holds(recvs_[i], n, seed_of(static_cast<int>(i), self_, round)))
        << n << " bytes from " << i << " to " << self_ << ": " << transport_.failure().message;
    transport_.release(recvs_[i]);
  }

  Transport& transport_;
  int self_;
  std::vector<std::byte*> out_;
  std::vector<Bytes> into_;
  std::array<SendRequest, kRanks> sends_;
  std::array<RecvRequest, kRanks> recvs_;
  std::array<bool, kRanks> sent_{};
  std::array<bool, kRanks> received_{};
};

TEST_P(MailboxTest, AllRanksTalkToAllAtOnceFromBothKindsOfMemory) {
  constexpr size_t kRounds = 100;
  connect(AllToAllPlayer::kRanks);
  std::vector<std::thread> threads;
  threads.reserve(AllToAllPlayer::kRanks);
  for (int rank = 0; rank < AllToAllPlayer::kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<Bytes> plain(2, Bytes(2 * kMiB));
      AllToAllPlayer player(
          at(rank), rank,
          {heap_memory(rank, 2 * kMiB), plain[0].data(), heap_memory(rank, 2 * kMiB), plain[1].data()});
      for (size_t round = 0; round < kRounds; ++round)
        player.play_round(round, kSizes[round % (kSizes.size() - 2)]);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tern
