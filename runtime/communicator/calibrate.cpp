#include "runtime/communicator/calibrate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "kernels/reduce.h"
#include "runtime/base/log.h"
#include "runtime/codec/codec.h"
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

void time_codecs(Calibration& c) {
  constexpr size_t kElements = kLarge / sizeof(float);
  constexpr int kTurns = 8;
  std::vector<float> in(kElements);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<float>(static_cast<int>(i * 2654435761U % 2001) - 1000) * 1e-3F;
  std::vector<float> residual(kElements);
  std::vector<float> out(kElements);
  for (const CodecInfo& codec : codecs()) {
    if (codec.id == CodecId::kNone) continue;
    const CodecSpec spec{.id = codec.id};
    std::vector<std::byte> wire(codec.wire_bytes(spec, Dtype::kFloat32, kElements));
    EncodeArgs args{.in = {in.data(), kElements, Dtype::kFloat32}, .wire = wire.data(), .spec = spec};
    if (codec.residual == ResidualUse::kMandatory) args.residual = residual.data();
    CodecSpeed& speed = c.codecs[static_cast<size_t>(codec.id)];
    const auto beta = [&](auto work) {
      return *least_seconds_of(kTurns, [&]() -> Status {
        work();
        return {};
      }) / kLarge;
    };
    speed.encode_beta = beta([&] { static_cast<void>(codec.encode(args)); });
    speed.decode_beta = beta([&] {
      codec.decode_run({.spec = spec, .wire = wire.data(), .n = kElements, .out = out, .how = Decode::kAdd});
    });
  }
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

  /// Seconds until the receiver said that it has n_messages of into.size() bytes, a few under way at a time.
  Result<double> stream(bool begins, const std::byte* data, std::span<std::byte> into, int n_messages) {
    const auto start = Clock::now();
    for (int sent = 0; sent < n_messages; sent += kUnderWay) {
      std::array<SendRequest, kUnderWay> sends;
      std::array<RecvRequest, kUnderWay> recvs;
      for (SendRequest& request : sends) {
        request = {.peer = peer_, .data = data, .n_bytes = into.size()};
        if (begins) transport_.send(request);
      }
      for (RecvRequest& request : recvs) {
        request = {.peer = peer_, .into = into.data(), .n_bytes = into.size()};
        if (!begins) transport_.recv(request);
      }
      for (SendRequest& request : sends)
        if (begins) TERN_TRY(finish(request));
      for (RecvRequest& request : recvs)
        if (!begins) TERN_TRY(take(request, into));
    }
    const std::span<std::byte> word = into.first(kWord);
    TERN_TRY(begins ? recv(word) : send(data, kWord));
    return seconds_since(start);
  }

  /// What the beginning end says, on both.
  Result<int> agree(bool begins, int number) {
    std::array<std::byte, kWord> word = {};
    std::memcpy(word.data(), &number, sizeof(number));
    TERN_TRY(begins ? send(word.data(), kWord) : recv(word));
    std::memcpy(&number, word.data(), sizeof(number));
    return number;
  }

 private:
  static constexpr size_t kWord = 8;
  static constexpr int kUnderWay = 4;

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
    return take(request, into);
  }
  Status take(RecvRequest& request, std::span<std::byte> into) {
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

/// Seconds per byte of a long transfer. What a link lets pass at once before its rate holds (a shaper's
/// burst, a switch's buffer) would make short ones look fast: amounts are doubled until they take long, and
/// only what the second half adds counts. Of several turns the quickest: others only hold them up.
Result<double> sustained_beta(End& end, bool begins, const std::byte* data, std::span<std::byte> into) {
  constexpr double kLong = 0.02;  // s
  constexpr int kMostMessages = 128;
  constexpr int kTurns = 3;
  int n = 4;
  for (int done = 0; done == 0;) {
    TERN_ASSIGN(const double seconds, end.stream(begins, data, into, n));
    TERN_ASSIGN(done, end.agree(begins, seconds >= kLong || n == kMostMessages ? 1 : 0));
    if (done == 0) n *= 2;
  }
  const auto amount = [&](int n_messages) {
    return least_seconds_of(kTurns, [&] { return end.stream(begins, data, into, n_messages).status(); });
  };
  TERN_ASSIGN(const double half, amount(n));
  TERN_ASSIGN(const double whole, amount(2 * n));
  return added_beta(half, whole, into.size() * static_cast<size_t>(n));
}

Status time_link(const World& world, Transport& transport, int peer, Link& link) {
  TERN_ASSIGN(const Allocation memory, allocate(world, kLarge));
  std::vector<std::byte> into(kLarge);
  End end(world, transport, world.rank == 0 ? peer : 0);
  const bool begins = world.rank == 0;
  const auto* data = static_cast<const std::byte*>(memory.data());
  constexpr size_t kSmall = 8;
  TERN_ASSIGN(const double small, end.time(begins, data, std::span(into).first(kSmall), kSmallTurns));
  link.alpha = small;
  if (!link.receiver_reads) {
    TERN_ASSIGN(link.beta, sustained_beta(end, begins, data, into));
    return {};
  }
  TERN_ASSIGN(const double large, end.time(begins, data, into, kLargeTurns));
  link.beta = added_beta(small, large, kLarge - kSmall);
  return {};
}

Status time_peer(const World& world, int peer, Link& link) {
  const std::vector<int> ends = {0, peer};
  TERN_ASSIGN(const auto transport, connect(world, ends, fmt::format("calibrate/{}", peer)));
  return time_link(world, *transport, peer, link);
}

// The first rank that is, or is not, on rank 0's host; -1: there is none.
int partner(const World& world, bool inside) {
  for (int r = 1; r < world.size; ++r)
    if ((world.host_ids[static_cast<size_t>(r)] == world.host_ids[0]) == inside) return r;
  return -1;
}

}  // namespace

double added_beta(double less, double more, size_t n_bytes) {
  constexpr double kLeastShare = 0.25;
  return std::max(more - less, kLeastShare * more) / static_cast<double>(n_bytes);
}

Result<Calibration> calibrate(const World& world) {
  Calibration measured = built_in_calibration();
  Status first;
  for (const bool inside : {true, false}) {
    const int peer = partner(world, inside);
    if (peer < 0 || (world.rank != 0 && world.rank != peer)) continue;
    Link& by_network = inside ? measured.loopback : measured.network;
    Link& link = inside && !is_network(world.config.transport) ? measured.shared_memory : by_network;
    // The other peer waits for rank 0 even where this one cannot be measured.
    if (Status timed = time_peer(world, peer, link); first.ok()) first = std::move(timed);
  }
  TERN_TRY(first);
  if (world.rank != 0) return built_in_calibration();
  time_core(measured);
  time_codecs(measured);
  return measured;
}

Result<Calibration> speeds_of(const World& world) {
  const bool is_one_host = world.local_size == world.size;
  if (!world.config.calibration.empty() || is_one_host || world.in_process)
    return calibration_of(world.config);
  const Result<Calibration> measured = calibrate(world);
  // Ranks that cannot connect are told so, all of them alike, when the communicator is made.
  if (!measured.ok() && measured.error().code != Code::kUnsupported)
    log_warn("calibrate", "links are not measured: {}", measured.error().message);
  constexpr std::string_view kKey = "calibration";
  if (world.rank == 0)
    TERN_TRY(world.store->set(kKey, to_json(measured.ok() ? *measured : built_in_calibration())));
  TERN_ASSIGN(const std::string text,
              world.store->get(kKey, Deadline::after(world.config.bootstrap_timeout)));
  TERN_ASSIGN(Calibration speeds, parse_calibration(text, "of rank 0"));
  log_info("calibrate", "between hosts {:.1f} us + {:.2f} GB/s", speeds.network.alpha * 1e6,
           1e-9 / speeds.network.beta);
  return speeds;
}

}  // namespace tern
