// The shm transport between real processes.
#include "runtime/transport/shm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "runtime/transport/inproc.h"
#include "tests/runtime/transport/shared_store.h"

namespace tern {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;

using RankBody = std::function<std::string(World& world)>;

/// Runs the body in `n` processes; each one's answer is "" when all is well. Returns how each ended (waitpid
/// status). Answers that are not "" are test failures.
std::vector<int> run_processes(int n, const RankBody& body) {
  const auto store = SharedStore::create();
  const auto answers = SharedStore::create();
  std::vector<pid_t> children;
  children.reserve(static_cast<size_t>(n));
  for (int rank = 0; rank < n; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      // Each process makes a heap of its own, as real ranks do.
      World world = worlds_over(store, n, false)[static_cast<size_t>(rank)];
      const std::string answer = body(world);
      (void)answers->set(std::to_string(rank), answer.substr(0, 200));
      ::_exit(answer.empty() ? 0 : 1);
    }
    children.push_back(child);
  }
  std::vector<int> ends;
  ends.reserve(children.size());
  for (int rank = 0; rank < n; ++rank) {
    int status = 0;
    EXPECT_EQ(::waitpid(children[static_cast<size_t>(rank)], &status, 0),
              children[static_cast<size_t>(rank)]);
    const auto answer = answers->get(std::to_string(rank), Deadline(Clock::time_point::min()));
    EXPECT_EQ(answer.ok() ? answer.value() : "", "") << "rank " << rank;
    ends.push_back(status);
  }
  return ends;
}

std::vector<int> all_ranks(const World& world) {
  std::vector<int> ranks;
  for (int rank = 0; rank < world.size; ++rank) ranks.push_back(rank);
  return ranks;
}

template <class Request>
Poll wait(Transport& transport, Request& request) {
  Poll poll = Poll::kPending;
  while ((poll = transport.poll(request)) == Poll::kPending) {
    const uint64_t token = transport.arm();
    if ((poll = transport.poll(request)) != Poll::kPending) break;
    transport.sleep(token, std::chrono::seconds(1));
  }
  return poll;
}

/// Passes `n` bytes to the right and takes as many from the left; says what went wrong.
std::string shift(Transport& transport, const World& world, std::byte* out, size_t n) {
  const int right = (world.rank + 1) % world.size;
  const int left = (world.rank + world.size - 1) % world.size;
  for (size_t i = 0; i < n; ++i)
    out[i] = static_cast<std::byte>((i * 7 + static_cast<size_t>(world.rank)) & 0xff);
  std::vector<std::byte> into(n);
  RecvRequest recv{
      .peer = left, .into = into.data(), .n_bytes = n, .data = nullptr, .envelope = {}, .state = {}};
  SendRequest send{.peer = right, .data = out, .n_bytes = n, .envelope = {}, .state = {}};
  transport.recv(recv);
  transport.send(send);
  bool received = false;
  bool sent = false;
  while (!received || !sent) {
    const uint64_t token = transport.arm();
    const Poll sending = transport.poll(send);
    if (sending == Poll::kFailed) return transport.failure().to_string();
    sent = sending == Poll::kDone;
    if (!received) {
      const Poll receiving = transport.poll(recv);
      if (receiving == Poll::kFailed) return transport.failure().to_string();
      received = receiving == Poll::kDone;
      if (received) {
        const auto* data = static_cast<const std::byte*>(recv.data);
        for (size_t i = 0; i < n; ++i) {
          const auto expected = static_cast<std::byte>((i * 7 + static_cast<size_t>(left)) & 0xff);
          if (data[i] != expected) return fmt::format("byte {} of {} is wrong", i, n);
        }
        transport.release(recv);
        continue;
      }
    }
    if (!received || !sent) transport.sleep(token, std::chrono::seconds(1));
  }
  return "";
}

TEST(Shm, ProcessesExchangeMessagesOfEverySizeAndEndingInGoodOrderIsNoFailure) {
  const auto ends = run_processes(4, [](World& world) -> std::string {
    auto transport = connect_shm(world, all_ranks(world), "test");
    if (!transport.ok()) return transport.error().to_string();
    for (const size_t n : {size_t{0}, size_t{4}, size_t{97}, size_t{5000}, kMiB, 3 * kMiB + 1, 8 * kMiB}) {
      std::vector<std::byte> plain(n);
      auto* shared = static_cast<std::byte*>(world.heap->allocate(n).value());
      for (std::byte* memory : {plain.data(), shared}) {
        if (std::string problem = shift(**transport, world, memory, n); !problem.empty()) return problem;
      }
      world.heap->free(shared);
    }
    return "";
  });
  EXPECT_EQ(ends, std::vector<int>(4, 0));
}

TEST(Shm, AKilledProcessIsNamedByAllOthers) {
  constexpr int kVictim = 2;
  const auto ends = run_processes(4, [](World& world) -> std::string {
    auto transport = connect_shm(world, all_ranks(world), "test");
    if (!transport.ok()) return transport.error().to_string();
    if (world.rank == kVictim) ::raise(SIGKILL);
    // Waits for a rank that lives, but will never send.
    const int peer = world.rank == 0 ? 1 : 0;
    RecvRequest recv{
        .peer = peer, .into = nullptr, .n_bytes = 4, .data = nullptr, .envelope = {}, .state = {}};
    (*transport)->recv(recv);
    if (wait(**transport, recv) != Poll::kFailed) return "received something";
    const Error& failure = (*transport)->failure();
    if (failure.code != Code::kPeerLost || failure.rank != kVictim) return failure.to_string();
    return "";
  });
  EXPECT_TRUE(WIFSIGNALED(ends[kVictim]));
}

TEST(Shm, DomainNamesTheHostAndTheProcessNamespace) {
  auto worlds = worlds_over(SharedStore::create(), 2);
  std::string why_not;
  const std::string domain = shm_domain(worlds[0], &why_not);
  EXPECT_THAT(domain, HasSubstr("here"));
  EXPECT_THAT(domain, HasSubstr("pid:["));
  EXPECT_EQ(domain, shm_domain(worlds[1], &why_not));
  worlds[1].host_id = "elsewhere";
  EXPECT_NE(domain, shm_domain(worlds[1], &why_not));
}

/// Changes a field of what rank 1 offers, as if the others looked it up in another process namespace.
class MisleadingStore final : public Store {
 public:
  MisleadingStore(std::shared_ptr<Store> inner, size_t field, std::string value)
      : inner_(std::move(inner)), field_(field), value_(std::move(value)) {}
  Status set(std::string_view key, std::string_view value) override {
    if (key != "test/offer/1") return inner_->set(key, value);
    std::string changed(value);
    size_t begin = 0;
    for (size_t i = 0; i < field_; ++i) begin = changed.find(' ', begin) + 1;
    changed.replace(begin, changed.find(' ', begin) - begin, value_);
    return inner_->set(key, changed);
  }
  Result<std::string> get(std::string_view key, Deadline deadline) override {
    return inner_->get(key, deadline);
  }
  std::shared_ptr<const Watch> watch(std::string_view key) override { return inner_->watch(key); }
  std::optional<Error> failure() const override { return inner_->failure(); }
  void fail(const Error& error) override { inner_->fail(error); }
  void leave() override { inner_->leave(); }

 private:
  std::shared_ptr<Store> inner_;
  size_t field_;
  std::string value_;
};

TEST(Shm, WhenOneRankCannotMapAnothersMemoryAllRanksSayWhoAndWhy) {
  struct Case {
    size_t field;
    std::string value;
    std::string_view why;
  };
  // A process that is not there; a file that is there, but is another one.
  for (const Case& c : {Case{0, "2147483647", "cannot look at /proc/2147483647/fd/"},
                        Case{1, "0", "/fd/0 is another file than the one offered"}}) {
    auto worlds = worlds_over(std::make_shared<MisleadingStore>(SharedStore::create(), c.field, c.value), 3);
    std::vector<std::thread> threads;
    threads.reserve(worlds.size());
    for (World& world : worlds) {
      threads.emplace_back([&] {
        const auto made = connect_shm(world, std::vector<int>{0, 1, 2}, "test");
        ASSERT_FALSE(made.ok());
        EXPECT_EQ(made.error().code, Code::kUnsupported);
        EXPECT_EQ(made.error().rank, 0);
        EXPECT_THAT(made.error().message, HasSubstr("rank 0 cannot share memory"));
        EXPECT_THAT(made.error().message, HasSubstr(c.why));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(Shm, AnOfferThatCannotBeReadIsAnError) {
  auto worlds = worlds_over(std::make_shared<MisleadingStore>(SharedStore::create(), 3, "inode"), 2);
  std::vector<std::thread> threads;
  threads.reserve(worlds.size());
  for (World& world : worlds) {
    threads.emplace_back([&] {
      const auto made = connect_shm(world, std::vector<int>{0, 1}, "test");
      ASSERT_FALSE(made.ok());
      EXPECT_EQ(made.error().code, Code::kCorrupt);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Inproc, ProcessesAreRefused) {
  const auto worlds = worlds_over(SharedStore::create(), 1, false);
  std::string why_not;
  EXPECT_EQ(inproc_domain(worlds[0], &why_not), "");
  EXPECT_THAT(why_not, HasSubstr("threads"));
  const auto made = connect_inproc(worlds[0], std::vector<int>{0}, "test");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::kUnsupported);
}

}  // namespace
}  // namespace tern
