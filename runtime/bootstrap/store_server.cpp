#include "runtime/bootstrap/store_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/handshake.h"
#include "runtime/bootstrap/socket.h"
#include "runtime/bootstrap/store.h"

namespace tern {
namespace {

constexpr auto kHandshakeTime = std::chrono::seconds(10);
constexpr auto kLingerTime = std::chrono::seconds(5);
constexpr size_t kReadBytes = size_t{64} << 10;

enum class Phase : uint8_t { kHello, kProof, kRefused, kJoined };

struct Connection {
  Fd fd;
  Phase phase = Phase::kHello;
  Deadline handshake;
  std::string hello;
  std::string challenge;
  int rank = -1;
  bool has_left = false;
  bool is_over = false;
  std::string in;
  std::string out;
};

struct Waiter {
  Connection* connection;
  uint64_t id;
  bool only_watches = false;  // waits on through a failure
};

/// What the thread owns.
class Loop {
 public:
  Loop(Fd listener, int wake, int size, const AuthKey& key)
      : listener_(std::move(listener)),
        wake_(wake),
        size_(size),
        key_(key),
        joined_(static_cast<size_t>(size)) {}

  void run() {
    while (!may_end()) {
      wait();
      accept_all();
      for (Connection& connection : connections_) serve(connection);
      drop_ended();
    }
  }

 private:
  bool may_end() {
    if (!linger_) return false;
    const bool all_gone = std::all_of(connections_.begin(), connections_.end(), [](const Connection& c) {
      return c.phase != Phase::kJoined || ((c.has_left || c.rank == 0) && c.out.empty());
    });
    const bool told = failure_ && std::all_of(connections_.begin(), connections_.end(),
                                              [](const Connection& c) { return c.out.empty(); });
    return all_gone || told || linger_->passed();
  }

  void wait() {
    polled_.clear();
    polled_.push_back({wake_, static_cast<short>(linger_ ? 0 : POLLIN), 0});
    polled_.push_back({linger_ ? -1 : listener_.get(), POLLIN, 0});
    Clock::duration left = linger_ ? linger_->left() : std::chrono::hours(1);
    for (const Connection& c : connections_) {
      polled_.push_back({c.fd.get(), static_cast<short>(c.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
      if (c.phase != Phase::kJoined) left = std::min(left, c.handshake.left());
    }
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    poll(polled_.data(), polled_.size(), static_cast<int>(ms));
    if (!linger_ && (polled_[0].revents & POLLIN) != 0) linger_.emplace(Clock::now() + kLingerTime);
  }

  void accept_all() {
    while (!linger_) {
      Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd) return;
      tune_connection(fd.get());
      drop_oldest_stranger();
      Connection& connection = connections_.emplace_back();
      connection.fd = std::move(fd);
      connection.handshake = Deadline(Clock::now() + kHandshakeTime);
    }
  }

  void drop_oldest_stranger() {
    const auto is_stranger = [](const Connection& c) { return c.phase != Phase::kJoined && !c.is_over; };
    if (std::count_if(connections_.begin(), connections_.end(), is_stranger) < 2 * size_ + 64) return;
    std::find_if(connections_.begin(), connections_.end(), is_stranger)->is_over = true;
  }

  void serve(Connection& connection) {
    read(connection);
    if (connection.phase != Phase::kJoined && connection.handshake.passed()) connection.is_over = true;
    flush(connection);
  }

  void read(Connection& connection) {
    while (!connection.is_over) {
      // A stranger may make us hold one message of the handshake, no more.
      size_t n_wanted = kReadBytes;
      if (connection.phase == Phase::kHello) n_wanted = kHelloBytes - connection.in.size();
      if (connection.phase == Phase::kProof) n_wanted = kProofBytes - connection.in.size();
      chunk_.resize(n_wanted);
      const ssize_t n = recv(connection.fd.get(), chunk_.data(), n_wanted, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) {
        connection.is_over = true;
        return;
      }
      connection.in.append(chunk_.data(), static_cast<size_t>(n));
      advance(connection);
    }
  }

  void advance(Connection& connection) {
    if (connection.phase == Phase::kHello && connection.in.size() == kHelloBytes) {
      connection.hello = std::exchange(connection.in, {});
      if (!read_hello(connection.hello)) {
        connection.is_over = true;
        return;
      }
      connection.challenge = make_challenge(key_, connection.hello);
      connection.out += connection.challenge;
      connection.phase = Phase::kProof;
    } else if (connection.phase == Phase::kProof && connection.in.size() == kProofBytes) {
      join(connection, std::exchange(connection.in, {}));
    } else if (connection.phase == Phase::kJoined) {
      take_frames(connection);
    }
  }

  void join(Connection& connection, std::string_view proof) {
    if (!check_proof(key_, connection.hello, connection.challenge, proof)) {
      connection.is_over = true;  // still in its proof: drop_ended() counts it
      return;
    }
    const Hello hello = *read_hello(connection.hello);
    if (hello.size != size_) {
      return refuse(connection, error(Code::kInvalidArgument,
                                      "rank {} believes that the world has {} ranks; rank 0 says {}",
                                      hello.rank, hello.size, size_));
    }
    if (hello.rank < 0 || hello.rank >= size_ || joined_[static_cast<size_t>(hello.rank)]) {
      return refuse(connection, error(Code::kInvalidArgument, "rank {} of {} has joined this world already",
                                      hello.rank, size_));
    }
    joined_[static_cast<size_t>(hello.rank)] = true;
    connection.rank = hello.rank;
    connection.phase = Phase::kJoined;
    append_frame(connection.out, {.type = FrameType::kReply});
    if (failure_) append_frame(connection.out, {.type = FrameType::kFailed, .value = pack_error(*failure_)});
  }

  // The connection has proved itself but cannot be a rank: told why, then forgotten (it closes on its own).
  void refuse(Connection& connection, const Error& why) {
    append_frame(connection.out, {.type = FrameType::kRefused, .value = pack_error(why)});
    flush(connection);
    connection.phase = Phase::kRefused;
    connection.is_over = true;
  }

  void take_frames(Connection& connection) {
    while (!connection.is_over) {
      Result<std::optional<Frame>> frame = take_frame(connection.in);
      if (!frame) {
        log_warn("bootstrap", "dropped rank {}'s connection to the store: {}", connection.rank,
                 frame.error().message);
        connection.is_over = true;
        return;
      }
      if (!*frame) return;
      handle(connection, **frame);
    }
  }

  void handle(Connection& connection, const Frame& frame) {
    switch (frame.type) {
      case FrameType::kSet:
        return handle_set(connection, frame);
      case FrameType::kGet:
      case FrameType::kWatch:
      case FrameType::kLook:
        return handle_get(connection, frame);
      case FrameType::kFail:
        return mark_failure(unpack_error(frame.value));
      case FrameType::kLeave:
        return handle_leave(connection, frame);
      default:
        connection.is_over = true;  // only servers say the rest
    }
  }

  void handle_set(Connection& connection, const Frame& frame) {
    const auto [at, inserted] = values_.emplace(frame.key, frame.value);
    if (!inserted && at->second != frame.value) {
      return refuse_request(
          {&connection, frame.id},
          error(Code::kInvalidArgument, "the key \"{}\" is set already, to another value", frame.key));
    }
    reply({&connection, frame.id}, {});
    const auto [first, last] = waiters_.equal_range(frame.key);
    for (auto waiter = first; waiter != last; ++waiter) reply(waiter->second, frame.value);
    waiters_.erase(first, last);
  }

  void handle_get(Connection& connection, const Frame& frame) {
    const Waiter waiter = {&connection, frame.id, frame.type == FrameType::kWatch};
    if (frame.key == kUnprovenKey) return reply(waiter, unproven());
    const auto at = values_.find(frame.key);
    if (at != values_.end()) return reply(waiter, at->second);
    if (failure_ && !waiter.only_watches) return refuse_request(waiter, *failure_);
    if (frame.type == FrameType::kLook) {
      return refuse_request(waiter, error(Code::kTimeout, "nobody set the key \"{}\" in time", frame.key));
    }
    waiters_.emplace(frame.key, waiter);
  }

  // Of interest only while somebody is missing: a rank with another secret is one that does not come.
  std::string unproven() const {
    const bool all_came = std::find(joined_.begin(), joined_.end(), false) == joined_.end();
    if (n_unproven_ == 0 || all_came) return {};
    return fmt::format(
        "{} connection{} to the store did not prove the world's secret, so TERN_SECRET probably differs "
        "between "
        "ranks",
        n_unproven_, n_unproven_ == 1 ? "" : "s");
  }

  void handle_leave(Connection& connection, const Frame& frame) {
    connection.has_left = true;
    if (connection.rank == 0) {
      for (Connection& other : connections_) {
        if (other.phase != Phase::kJoined || other.rank == 0) continue;
        append_frame(other.out, {.type = FrameType::kClosing});
        flush(other);
      }
    }
    reply({&connection, frame.id}, {});
  }

  static void reply(Waiter to, const std::string& value) {
    append_frame(to.connection->out, {.type = FrameType::kReply, .id = to.id, .value = value});
    flush(*to.connection);
  }

  static void refuse_request(Waiter to, const Error& why) {
    append_frame(to.connection->out, {.type = FrameType::kRefused, .id = to.id, .value = pack_error(why)});
    flush(*to.connection);
  }

  void mark_failure(const Error& error) {
    if (failure_) return;
    failure_ = error;
    for (Connection& connection : connections_) {
      if (connection.phase != Phase::kJoined) continue;
      append_frame(connection.out, {.type = FrameType::kFailed, .value = pack_error(error)});
      flush(connection);
    }
    // After the notice, so that whoever is told why its wait ended finds the failure noted.
    std::erase_if(waiters_, [&](const auto& entry) {
      if (!entry.second.only_watches) refuse_request(entry.second, error);
      return !entry.second.only_watches;
    });
  }

  static void flush(Connection& connection) {
    while (!connection.out.empty()) {
      const ssize_t n = send(connection.fd.get(), connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        if (errno != EAGAIN) connection.is_over = true;
        return;
      }
      connection.out.erase(0, static_cast<size_t>(n));
    }
  }

  void drop_ended() {
    for (auto at = connections_.begin(); at != connections_.end();) {
      if (!at->is_over) {
        ++at;
        continue;
      }
      std::erase_if(waiters_, [&](const auto& entry) { return entry.second.connection == &*at; });
      // It said hello as a rank does, then sent no proof or a wrong one.
      if (at->phase == Phase::kProof && n_unproven_++ == 0)
        log_warn("bootstrap", "a connection to the store did not prove the world's secret (TERN_SECRET)");
      const bool is_lost = at->phase == Phase::kJoined && !at->has_left;
      const int rank = at->rank;
      at = connections_.erase(at);
      if (is_lost) {
        mark_failure(
            error_at(rank, Code::kPeerLost, "rank {} is lost: its process ended or cannot be reached", rank));
      }
    }
  }

  Fd listener_;
  int wake_;
  int size_;
  AuthKey key_;
  std::vector<bool> joined_;  // ever; a rank does not come twice
  int n_unproven_ = 0;
  std::optional<Deadline> linger_;
  std::optional<Error> failure_;
  std::list<Connection> connections_;  // a list: waiters point into it
  std::map<std::string, std::string, std::less<>> values_;
  std::multimap<std::string, Waiter, std::less<>> waiters_;
  std::vector<pollfd> polled_;
  std::string chunk_;
};

}  // namespace

Result<std::unique_ptr<StoreServer>> StoreServer::create(const Options& options) {
  std::unique_ptr<StoreServer> server(new StoreServer);
  TERN_ASSIGN(Fd listener, listen_on(options.address, options.port));
  server->port_ = port_of(listener);
  server->wake_.reset(eventfd(0, EFD_CLOEXEC));
  if (!server->wake_) return error(Code::kIo, "no event descriptor for the store's server");
  server->thread_ = std::thread(
      [listener = std::move(listener), wake = server->wake_.get(), size = options.size,
       key = auth_key(options.secret)]() mutable { Loop(std::move(listener), wake, size, key).run(); });
  return server;
}

StoreServer::~StoreServer() {
  if (!thread_.joinable()) return;
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

}  // namespace tern
