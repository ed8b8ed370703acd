// Latency and bandwidth of the transports themselves, without plans, codecs or the executor.
//
//   transport_perf --transport shm --ranks 4         ranks as threads
//   mpirun -n 4 transport_perf --transport shm       ranks as processes
//
// Columns: ping-pong between ranks 0 and 1, half a round trip; exchange: every rank sends to and receives
// from all others (what a direct all-reduce of that size costs in messages); stream: rank 0 to rank 1 with 8
// messages under way, the receiver reading every byte, from memory of the shared heap and from ordinary
// memory. Medians of 7 runs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bench/flags.h"
#include "runtime/transport/transport.h"

namespace tern {
namespace {

constexpr int kRuns = 7;
constexpr size_t kUnderWay = 8;

/// Spins briefly, then lets other ranks of this core run: what the executor does before it sleeps.
class Waiter {
 public:
  explicit Waiter(int n_polls_before_yield) : n_polls_before_yield_(n_polls_before_yield) {}
  void wait() {
    if (++n_polls_ % n_polls_before_yield_ == 0) std::this_thread::yield();
  }

 private:
  int n_polls_before_yield_;
  int n_polls_ = 0;
};

struct Rank {
  const World& world;
  Transport& transport;
  int n_polls_before_yield;

  void check(Poll poll) const {
    if (poll == Poll::kFailed) throw std::runtime_error(transport.failure().to_string());
  }
  template <class Request>
  void finish(Request& request) const {
    Waiter waiter(n_polls_before_yield);
    Poll poll = Poll::kPending;
    while ((poll = transport.poll(request)) == Poll::kPending) waiter.wait();
    check(poll);
  }
  void send(int peer, const void* data, size_t n) const {
    SendRequest request{.peer = peer, .data = data, .n_bytes = n, .envelope = {}, .state = {}};
    transport.send(request);
    finish(request);
  }
  void recv(int peer, void* into, size_t n) const {
    RecvRequest request{
        .peer = peer, .into = into, .n_bytes = n, .data = nullptr, .envelope = {}, .state = {}};
    transport.recv(request);
    finish(request);
    transport.release(request);
  }
};

/// All ranks: send one message to and receive one from every other.
void exchange_once(const Rank& rank, const std::byte* data, std::byte* into, size_t n) {
  const auto n_ranks = static_cast<size_t>(rank.world.size);
  static thread_local std::vector<SendRequest> sends;
  static thread_local std::vector<RecvRequest> recvs;
  sends.assign(n_ranks, {});
  recvs.assign(n_ranks, {});
  for (size_t i = 1; i < n_ranks; ++i) {
    const int peer = static_cast<int>((static_cast<size_t>(rank.world.rank) + i) % n_ranks);
    recvs[i] = {
        .peer = peer, .into = into + i * n, .n_bytes = n, .data = nullptr, .envelope = {}, .state = {}};
    rank.transport.recv(recvs[i]);
    sends[i] = {.peer = peer, .data = data, .n_bytes = n, .envelope = {}, .state = {}};
    rank.transport.send(sends[i]);
  }
  for (size_t i = 1; i < n_ranks; ++i) {
    rank.finish(recvs[i]);
    rank.transport.release(recvs[i]);
  }
  for (size_t i = 1; i < n_ranks; ++i) rank.finish(sends[i]);
}

void ping_pong(const Rank& rank, const std::byte* data, std::byte* into, size_t n) {
  if (rank.world.rank > 1) return;
  const int peer = 1 - rank.world.rank;
  if (rank.world.rank == 0) rank.send(peer, data, n);
  rank.recv(peer, into, n);
  if (rank.world.rank == 1) rank.send(peer, data, n);
}

uint64_t sum_of(const void* data, size_t n) {
  uint64_t sum = 0;
  const auto* words = static_cast<const std::byte*>(data);
  for (size_t i = 0; i + 8 <= n; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, words + i, 8);
    sum += word;
  }
  return sum;
}

/// kUnderWay messages from rank 0 to rank 1, the receiver reading each.
void stream(const Rank& rank, const std::byte* data, std::byte* into, size_t n) {
  if (rank.world.rank == 0) {
    std::array<SendRequest, kUnderWay> sends;
    for (SendRequest& send : sends) {
      send = {.peer = 1, .data = data, .n_bytes = n, .envelope = {}, .state = {}};
      rank.transport.send(send);
    }
    for (SendRequest& send : sends) rank.finish(send);
  } else if (rank.world.rank == 1) {
    static std::atomic<uint64_t> sink = 0;  // so that the reads are not optimised away
    for (size_t i = 0; i < kUnderWay; ++i) {
      RecvRequest recv{.peer = 0, .into = into, .n_bytes = n, .data = nullptr, .envelope = {}, .state = {}};
      rank.transport.recv(recv);
      rank.finish(recv);
      sink = sum_of(recv.data, n);
      rank.transport.release(recv);
    }
  }
}

void barrier(const Rank& rank) {
  std::byte none{};
  std::vector<std::byte> into(static_cast<size_t>(rank.world.size));
  exchange_once(rank, &none, into.data(), 1);
}

/// Median over the runs of the microseconds that one call takes.
double time_us(const Rank& rank, int n_calls, const std::function<void()>& call) {
  std::array<double, kRuns> us{};
  for (int i = 0; i < n_calls / 10 + 1; ++i) call();
  for (double& run : us) {
    barrier(rank);
    const auto start = Clock::now();
    for (int i = 0; i < n_calls; ++i) call();
    run = seconds_since(start) * 1e6 / n_calls;
  }
  std::sort(us.begin(), us.end());
  return us[kRuns / 2];
}

void measure(const Rank& rank) {
  const World& world = rank.world;
  const Transport& transport = rank.transport;
  constexpr size_t kLargest = size_t{16} << 20;
  auto shared = allocate(world, kLargest);
  if (!shared.ok()) throw std::runtime_error(shared.error().to_string());
  std::vector<std::byte> plain(kLargest, std::byte{1});
  std::vector<std::byte> into(kLargest * static_cast<size_t>(world.size), std::byte{1});
  auto* heap = static_cast<std::byte*>(shared.value().data());
  std::memset(heap, 1, kLargest);
  if (world.rank == 0) {
    std::printf("# %s, %d ranks, %u cores\n#%11s %12s %12s %14s %14s\n",
                std::string(transport.name()).c_str(), world.size, std::thread::hardware_concurrency(),
                "bytes", "pingpong us", "exchange us", "stream GB/s", "plain GB/s");
  }
  for (size_t n = 4; n <= kLargest; n *= 4) {
    const int n_calls = static_cast<int>(std::clamp<size_t>((size_t{64} << 20) / n, 10, 5000));
    const double ping = time_us(rank, n_calls, [&] { ping_pong(rank, heap, into.data(), n); }) / 2;
    const double all = time_us(rank, n_calls, [&] { exchange_once(rank, heap, into.data(), n); });
    const int n_streams = n_calls / 8 + 2;
    const double shared_us = time_us(rank, n_streams, [&] { stream(rank, heap, into.data(), n); });
    const double plain_us = time_us(rank, n_streams, [&] { stream(rank, plain.data(), into.data(), n); });
    if (world.rank != 0) continue;
    const double moved = static_cast<double>(n * kUnderWay) / 1e3;
    std::printf("%12zu %12.2f %12.2f %14.2f %14.2f\n", n, ping, all, moved / shared_us, moved / plain_us);
    std::fflush(stdout);
  }
}

struct Options {
  std::string transport = "shm";
  int n_ranks = 2;
  int n_polls_before_yield = 64;
};

int run_rank(const World& world, const Options& options) {
  std::vector<int> members(static_cast<size_t>(world.size));
  std::iota(members.begin(), members.end(), 0);
  try {
    const auto row = find_transport(options.transport);
    if (!row.ok()) throw std::runtime_error(row.error().to_string());
    auto transport = (*row.value()).connect(world, members, "transport_perf");
    if (!transport.ok()) throw std::runtime_error(transport.error().to_string());
    measure({world, **transport, options.n_polls_before_yield});
  } catch (const std::runtime_error& failure) {
    std::fprintf(stderr, "rank %d: %s\n", world.rank, failure.what());
    return 1;
  }
  world.store->leave();
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app("Latency and bandwidth of the transports");
  tern::bench::prepare_flags(app);
  Options options;
  app.add_option("--transport", options.transport, "a row of `tern info`'s transports");
  app.add_option("--ranks", options.n_ranks, "ranks as threads, when not started as processes")
      ->check(CLI::Range(1, 4096));
  app.add_option("--polls", options.n_polls_before_yield, "polls between two yields of a waiting rank");
  const std::vector<const char*> args(argv, argv + argc);
  if (const auto status = tern::bench::end_at_flags(app, args)) return *status;
  const auto config = Config::from_environment();
  if (!config.ok()) return std::fprintf(stderr, "%s\n", config.error().to_string().c_str()), 1;
  auto world = World::from_environment(*config);
  if (!world.ok()) return std::fprintf(stderr, "%s\n", world.error().to_string().c_str()), 1;
  if (world->size > 1) return run_rank(*world, options);
  auto worlds = World::in_process_world(options.n_ranks, *config);
  if (!worlds.ok()) return std::fprintf(stderr, "%s\n", worlds.error().to_string().c_str()), 1;
  std::vector<std::thread> threads;
  std::atomic<int> n_failed = 0;
  threads.reserve(worlds->size());
  for (const World& each : *worlds) threads.emplace_back([&] { n_failed += run_rank(each, options); });
  for (std::thread& thread : threads) thread.join();
  return n_failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tern

int main(int argc, char** argv) {
  return tern::run(argc, argv);
}
