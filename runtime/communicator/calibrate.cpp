#include "runtime/communicator/calibrate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "kernels/reduce.h"
#include "runtime/transport/transport.h"

namespace tern {
namespace {

constexpr size_t kNear = 128 << 10;   // three of them fit in a second-level cache
constexpr size_t kFar = 32 << 20;     // and not in a last-level cache's share
constexpr size_t kLarge = 256 << 10;  // below CostModel::cache_bytes, beyond which `far` applies
constexpr int kSmallTurns = 100;
constexpr int kLargeTurns = 60;

/// The least of several turns: what the machine does when nobody else has the core. Others only add to it.
template <class Turn>
Result<double> least_seconds_of(int n_turns, Turn turn) {
  double least = 0;
  for (int i = 0; i < n_turns; ++i) {
    const auto start = Clock::now();
    TERN_TRY(turn());
    const double seconds = seconds_since(start);
    if (i == 0 || seconds < least) least = seconds;
  }
  return least;
}

/// Seconds per byte of one sum of `srcs`, n bytes each.
double seconds_per_byte(void* sum, std::span<const void* const> srcs, size_t n, int n_turns) {
  const Result<double> seconds = least_seconds_of(n_turns, [&]() -> Status {
    reduce(Dtype::kFloat32, Op::kSum, sum, {srcs, n / sizeof(float)});
    return {};
  });
  return *seconds / static_cast<double>(n);
}

void time_core(Calibration& c) {
  constexpr int kNearTurns = 200;
  constexpr int kFarTurns = 6;
  const std::vector<float> a(kFar / sizeof(float), 1.0F);
  const std::vector<float> b(kNear / sizeof(float), 2.0F);
  std::vector<float> sum(kFar / sizeof(float));
  const std::array<const void*, 2> two = {a.data(), b.data()};
  const std::array<const void*, 1> one = {a.data()};
  c.copy_beta = seconds_per_byte(sum.data(), one, kNear, kNearTurns);
  c.reduce_beta = seconds_per_byte(sum.data(), two, kNear, kNearTurns);
  c.far = std::max(1.0, seconds_per_byte(sum.data(), one, kFar, kFarTurns) / c.copy_beta);
}

/// One end of a link; both ends do the same turns.
class End {
 public:
  End(const World& world, Transport& transport, int peer)
      : transport_(transport), peer_(peer), deadline_(Deadline::after(world.config.timeout)) {}

  /// Seconds of a message of into.size() bytes: half of there and back, read by the receiver.
  Result<double> time(bool begins, const std::byte* data, std::span<std::byte> into, int n_turns) {
    TERN_ASSIGN(const double seconds, least_seconds_of(n_turns, [&]() -> Status {
                  if (begins) TERN_TRY(send(data, into.size()));
                  TERN_TRY(recv(into));
                  return begins ? Status() : send(data, into.size());
                }));
    return seconds / 2;
  }

 private:
  template <class Request>
  Status finish(Request& request) {
    Poll poll = Poll::kPending;
    for (int n = 1; (poll = transport_.poll(request)) == Poll::kPending; ++n) {
      constexpr int kPollsBeforeYield = 2000;  // the other end may need this core
      if (n % kPollsBeforeYield != 0) continue;
      std::this_thread::yield();
      if (deadline_.passed())
        return error_at(peer_, Code::kTimeout, "rank {} did not answer while links were timed", peer_);
    }
    return poll == Poll::kFailed ? Status(transport_.failure()) : Status();
  }
  Status send(const std::byte* data, size_t n) {
    SendRequest request{.peer = peer_, .data = data, .n_bytes = n};
    transport_.send(request);
    return finish(request);
  }
  Status recv(std::span<std::byte> into) {
    RecvRequest request{.peer = peer_, .into = into.data(), .n_bytes = into.size()};
    transport_.recv(request);
    TERN_TRY(finish(request));
    if (request.data != nullptr && request.data != into.data())
      std::memcpy(into.data(), request.data, into.size());
    transport_.release(request);
    return {};
  }

  Transport& transport_;
  int peer_;
  Deadline deadline_;
};

Status time_link(const World& world, Transport& transport, int peer, Link& link) {
  TERN_ASSIGN(const Allocation memory, allocate(world, kLarge));
  std::vector<std::byte> into(kLarge);
  End end(world, transport, world.rank == 0 ? peer : 0);
  const bool begins = world.rank == 0;
  const auto* data = static_cast<const std::byte*>(memory.data());
  constexpr size_t kSmall = 8;
  TERN_ASSIGN(const double small, end.time(begins, data, std::span(into).first(kSmall), kSmallTurns));
  TERN_ASSIGN(const double large, end.time(begins, data, into, kLargeTurns));
  link.alpha = small;
  link.beta = std::max(large - small, 1e-12) / (kLarge - kSmall);
  return {};
}

// The first rank that is, or is not, on rank 0's host; -1: there is none.
int partner(const World& world, bool inside) {
  for (int r = 1; r < world.size; ++r)
    if ((world.host_ids[static_cast<size_t>(r)] == world.host_ids[0]) == inside) return r;
  return -1;
}

}  // namespace

Result<Calibration> calibrate(const World& world) {
  TERN_ASSIGN(const auto transport, connect(world, world.all_ranks(), "calibrate"));
  Calibration c = built_in_calibration();
  Calibration measured = c;
  for (const bool inside : {true, false}) {
    const int peer = partner(world, inside);
    if (peer < 0 || (world.rank != 0 && world.rank != peer)) continue;
    Link& by_ucx = inside ? measured.loopback : measured.network;
    Link& link = inside && world.config.transport != "ucx" ? measured.shared_memory : by_ucx;
    TERN_TRY(time_link(world, *transport, peer, link));
  }
  if (world.rank != 0) return c;
  time_core(measured);
  return measured;
}

}  // namespace tern
