// Ranks of one process over inproc and shm, driven by tests that decide who does what when.
#pragma once

#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/transport/inproc.h"
#include "runtime/transport/shm.h"
#include "tests/runtime/transport/shared_store.h"

namespace tern {

inline constexpr size_t kKiB = 1024;
inline constexpr size_t kMiB = size_t{1} << 20;
inline const std::vector<size_t> kSizes = {
    0,        1,    31,       32,           33,      95, 96, 97, 1000, 4095, 4096, 4097, 64 * kKiB + 1,
    kMiB - 1, kMiB, kMiB + 1, 3 * kMiB + 5, 8 * kMiB};

using Bytes = std::vector<std::byte>;

/// Bytes that tell messages and positions apart: random with a period that no slot or piece size divides, so
/// that tests compare by memcmp (which stays fast under sanitizers).
inline constexpr size_t kPeriod = 65539;
inline constexpr size_t kLargestMessage = 20 * kMiB;
inline const std::byte* pattern_of(size_t seed) {
  static const Bytes table = [] {
    Philox random(1);
    Bytes bytes(kLargestMessage + kPeriod);
    for (size_t i = 0; i < kPeriod; ++i) bytes[i] = static_cast<std::byte>(random.next());
    for (size_t at = kPeriod; at < bytes.size(); at += kPeriod) {
      std::memcpy(&bytes[at], bytes.data(), std::min(kPeriod, bytes.size() - at));
    }
    return bytes;
  }();
  return table.data() + seed * 977 % kPeriod;
}
inline void fill(std::byte* data, size_t n, size_t seed) {
  if (n > 0) std::memcpy(data, pattern_of(seed), n);
}
inline Bytes pattern(size_t n, size_t seed) {
  return {pattern_of(seed), pattern_of(seed) + n};
}
inline bool holds(const RecvRequest& r, size_t n, size_t seed) {
  return r.data != nullptr && r.n_bytes == n && std::memcmp(r.data, pattern_of(seed), n) == 0;
}

struct Connect {
  std::string_view name;
  Result<std::unique_ptr<Transport>> (*connect)(const World&, std::span<const int>, std::string_view);
  friend void PrintTo(const Connect& row, std::ostream* os) { *os << row.name; }
};

/// Ranks of one process, all their transports in the hands of the test.
class MailboxTest : public ::testing::TestWithParam<Connect> {
 protected:
  void connect(int n, std::string_view key = "test") {
    store_ = SharedStore::create();
    worlds_ = worlds_over(store_, n);
    std::vector<int> members(static_cast<size_t>(n));
    std::iota(members.begin(), members.end(), 0);
    connect_members(members, key);
  }
  void connect_members(const std::vector<int>& members, std::string_view key) {
    ranks_.clear();
    ranks_.resize(worlds_.size());
    std::vector<std::thread> threads;
    threads.reserve(members.size());
    for (const int rank : members) {
      threads.emplace_back([&, rank] {
        auto made = GetParam().connect(worlds_[static_cast<size_t>(rank)], members, key);
        ASSERT_TRUE(made.ok()) << made.error().to_string();
        ranks_[static_cast<size_t>(rank)] = std::move(made).value();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  Transport& at(int rank) { return *ranks_[static_cast<size_t>(rank)]; }
  std::byte* heap_memory(int rank, size_t n) {
    return static_cast<std::byte*>(worlds_[static_cast<size_t>(rank)].heap->allocate(n).value());
  }
  /// True where receivers read the memory of senders through the kernel, which seccomp may forbid.
  static bool reads_remotely() {
    uint64_t from = 1;
    uint64_t to = 0;
    const iovec source{&from, sizeof(from)};
    const iovec target{&to, sizeof(to)};
    return GetParam().name == "shm" &&
           ::process_vm_readv(::getpid(), &target, 1, &source, 1, 0) == sizeof(to);
  }
  static SendRequest send_request(int peer, const void* data, size_t n, Envelope envelope = {}) {
    return {.peer = peer, .data = data, .n_bytes = n, .envelope = envelope, .state = {}};
  }
  static RecvRequest recv_request(int peer, void* into, size_t n) {
    return {.peer = peer, .into = into, .n_bytes = n, .data = nullptr, .envelope = {}, .state = {}};
  }
  /// Polls both ends until the receive is done.
  void finish(int from, SendRequest& send, int to, RecvRequest& recv) {
    while (true) {
      const Poll sent = at(from).poll(send);
      const Poll received = at(to).poll(recv);
      ASSERT_NE(sent, Poll::kFailed) << at(from).failure().to_string();
      ASSERT_NE(received, Poll::kFailed) << at(to).failure().to_string();
      if (received == Poll::kDone) return;
    }
  }

  std::shared_ptr<SharedStore> store_;
  std::vector<World> worlds_;
  std::vector<std::unique_ptr<Transport>> ranks_;
};

/// shm where the kernel does not let ranks read each other's memory.
inline Result<std::unique_ptr<Transport>> connect_shm_staged(const World& world, std::span<const int> members,
                                                             std::string_view key) {
  World staged = world;
  staged.config.single_copy = 0;
  return connect_shm(staged, members, key);
}

/// The rows that run over the mailbox core.
inline const auto kMailboxTransports =
    ::testing::Values(Connect{"inproc", connect_inproc}, Connect{"shm", connect_shm},
                      Connect{"shm_staged", connect_shm_staged});
inline std::string name_of_row(const ::testing::TestParamInfo<Connect>& row) {
  return std::string(row.param.name);
}

}  // namespace tern
