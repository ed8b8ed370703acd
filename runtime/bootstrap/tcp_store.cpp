#include "runtime/bootstrap/tcp_store.h"

#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/handshake.h"
#include "runtime/bootstrap/socket.h"

namespace tern {
namespace {

constexpr auto kRetryPause = std::chrono::milliseconds(20);
constexpr Seconds kHandshakeTime{10};
constexpr Seconds kGoodbyeTime{2};

std::string place(const std::string& address, int port) {
  return fmt::format("{}:{}", address, port);
}

// One try: connects and proves. kIo and kPeerLost mean that it is worth trying again.
Result<Fd> connect_and_prove(const TcpStore::Options& options, const std::string& address,
                             Deadline deadline) {
  TERN_ASSIGN(Fd fd, connect_to(address, options.port, deadline));
  const AuthKey key = auth_key(options.secret);
  const std::string hello = make_hello({options.rank, options.size});
  TERN_TRY(send_all(fd.get(), hello, deadline));
  std::string challenge(kChallengeBytes, '\0');
  TERN_TRY(receive_all(fd.get(), challenge.data(), challenge.size(), deadline));
  switch (check_challenge(key, hello, challenge)) {
    case Verdict::kProven:
      break;
    case Verdict::kNotTern:
      return error(Code::kInvalidArgument, "what listens at {} is not the store of a Tern world",
                   place(address, options.port));
    case Verdict::kWrongSecret:
      return error(Code::kInvalidArgument,
                   "rank {} and the store of rank 0 at {} did not prove the same secret to each other, so "
                   "TERN_SECRET probably differs between them",
                   options.rank, place(address, options.port));
  }
  TERN_TRY(send_all(fd.get(), make_proof(key, hello, challenge), deadline));
  return fd;
}

Result<Fd> connect_until(const TcpStore::Options& options) {
  const auto start = Clock::now();
  Error last = error(Code::kIo, "no address was given");
  while (true) {
    for (const std::string& address : options.addresses) {
      const Deadline try_until(std::min(options.deadline.at(), Deadline::after(kHandshakeTime).at()));
      Result<Fd> fd = connect_and_prove(options, address, try_until);
      if (fd) return fd;
      // With several addresses, a stranger may listen at one that means another machine here.
      if (fd.error().code == Code::kInvalidArgument && options.addresses.size() == 1) return fd.error();
      last = fd.error();
    }
    if (options.deadline.passed()) {
      return error(Code::kTimeout, "rank {} could not join rank 0's store within {:.3g} s: {}", options.rank,
                   seconds_since(start), last.message);
    }
    std::this_thread::sleep_for(std::min<Clock::duration>(kRetryPause, options.deadline.left()));
  }
}

class Client final : public TcpStore {
 public:
  Client(const Options& options, Fd fd, std::unique_ptr<StoreServer> server)
      : rank_(options.rank),
        request_timeout_(options.request_timeout),
        server_(std::move(server)),
        fd_(std::move(fd)) {}

  ~Client() override {
    leave();
    shutdown(fd_.get(), SHUT_RDWR);
    if (reader_.joinable()) reader_.join();
  }

  // The server's answer to the proof, then the reader takes over.
  Status start(Deadline deadline) {
    std::string buffer;
    while (true) {
      Result<std::optional<Frame>> frame = take_frame(buffer);
      TERN_TRY(frame.status());
      if (*frame && (*frame)->type == FrameType::kRefused) return unpack_error((*frame)->value);
      if (*frame) break;
      char byte = 0;  // by the byte: what follows the frame is the reader's
      const Status got = receive_all(fd_.get(), &byte, 1, deadline);
      if (!got.ok())
        return error(got.error().code, "the store did not admit this rank: {}", got.error().message);
      buffer += byte;
    }
    is_closed_ = false;
    reader_ = std::thread([this] { read_all(); });
    return {};
  }

  std::string local_address() const override { return tern::local_address(fd_.get()); }

  Status set(std::string_view key, std::string_view value) override {
    const Frame frame = {.type = FrameType::kSet, .key = std::string(key), .value = std::string(value)};
    return request(frame, Deadline::after(request_timeout_)).status();
  }

  void post(std::string_view key, std::string_view value) override {
    Frame frame = {.type = FrameType::kSet, .key = std::string(key), .value = std::string(value)};
    {
      const std::lock_guard lock(mutex_);
      frame.id = ++last_id_;
    }
    send_frame(frame);  // the answer finds nobody who asked
  }

  Result<std::string> get(std::string_view key, Deadline deadline) override {
    if (deadline.passed()) {
      return request({.type = FrameType::kLook, .key = std::string(key)}, Deadline::after(request_timeout_));
    }
    return request({.type = FrameType::kGet, .key = std::string(key)}, deadline);
  }

  std::shared_ptr<const Watch> watch(std::string_view key) override {
    const auto watch = std::make_shared<Watch>();
    Frame frame = {.type = FrameType::kWatch, .key = std::string(key)};
    {
      const std::lock_guard lock(mutex_);
      frame.id = ++last_id_;
      watches_.emplace(frame.id, watch);
    }
    send_frame(frame);
    return watch;
  }

  std::optional<Error> failure() const override {
    // Acquire pairs with the release in note_failure(): the error is whole when the flag is seen.
    if (!has_failed_.load(std::memory_order_acquire)) return std::nullopt;
    return failure_;
  }

  void fail(const Error& error) override {
    note_failure(error);
    send_frame({.type = FrameType::kFail, .value = pack_error(error)});
  }

  void leave() override {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(has_left_, true) || is_closed_) return;
    }
    // Only an answer proves that the server knows: the process may end right after.
    static_cast<void>(request({.type = FrameType::kLeave}, Deadline::after(kGoodbyeTime)));
  }

 private:
  struct Answer {
    bool is_there = false;
    Frame frame;
  };

  Result<std::string> request(Frame frame, Deadline deadline) {
    std::unique_lock lock(mutex_);
    if (is_closed_) return closed_error();
    frame.id = ++last_id_;
    Answer& answer = answers_[frame.id];
    lock.unlock();
    send_frame(frame);
    lock.lock();
    while (!answer.is_there && !is_closed_ && !deadline.passed()) {
      answered_.wait_for(lock, std::min<Clock::duration>(deadline.left(), std::chrono::hours(1)));
    }
    const Answer taken = std::move(answer);
    answers_.erase(frame.id);
    if (!taken.is_there && is_closed_) return closed_error();
    if (!taken.is_there) {
      return error(Code::kTimeout, "the store did not answer about \"{}\" in time", frame.key);
    }
    if (taken.frame.type == FrameType::kRefused) return unpack_error(taken.frame.value);
    return taken.frame.value;
  }

  void send_frame(const Frame& frame) {
    std::string bytes;
    append_frame(bytes, frame);
    const std::lock_guard lock(send_mutex_);
    // A failure shows as the end of the connection, which the reader sees.
    static_cast<void>(send_all(fd_.get(), bytes, Deadline::after(request_timeout_)));
  }

  void read_all() {
    std::string buffer;
    std::string chunk(size_t{64} << 10, '\0');
    while (true) {
      Result<std::optional<Frame>> frame = take_frame(buffer);
      if (!frame) break;
      if (*frame) {
        handle(std::move(**frame));
        continue;
      }
      Status got = receive_all(fd_.get(), chunk.data(), 1, Deadline());
      if (!got.ok()) break;
      buffer += chunk[0];
      const ssize_t n = recv(fd_.get(), chunk.data(), chunk.size(), 0);
      if (n > 0) buffer.append(chunk.data(), static_cast<size_t>(n));
    }
    close();
  }

  void handle(Frame frame) {
    if (frame.type == FrameType::kFailed) return note_failure(unpack_error(frame.value));
    const std::lock_guard lock(mutex_);
    if (frame.type == FrameType::kClosing) {
      host_leaves_ = true;
      return;
    }
    if (const auto watch = watches_.find(frame.id); watch != watches_.end()) {
      watch->second->set(frame.value);
      watches_.erase(watch);
      return;
    }
    const auto at = answers_.find(frame.id);
    if (at == answers_.end()) return;  // its asker gave up
    at->second = {true, std::move(frame)};
    answered_.notify_all();
  }

  void note_failure(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (has_failed_.load(std::memory_order_relaxed)) return;  // the mutex orders writers
    failure_ = error;
    has_failed_.store(true, std::memory_order_release);
  }

  void close() {
    bool is_lost = false;
    {
      const std::lock_guard lock(mutex_);
      is_lost = !has_left_ && !host_leaves_;
    }
    if (is_lost)
      note_failure(error_at(0, Code::kPeerLost,
                            "rank 0, which hosts the store, is lost: its connection to rank {} ended",
                            rank_));
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    answered_.notify_all();
  }

  Error closed_error() const {
    if (has_failed_.load(std::memory_order_acquire)) return failure_;
    return error_at(0, Code::kPeerLost, "rank 0, which hosts the store, has left the world");
  }

  const int rank_;
  const Seconds request_timeout_;
  std::unique_ptr<StoreServer> server_;
  Fd fd_;
  std::mutex send_mutex_;
  std::mutex mutex_;  // all below
  std::condition_variable answered_;
  std::map<uint64_t, Answer> answers_;
  std::map<uint64_t, std::shared_ptr<Watch>> watches_;
  uint64_t last_id_ = 0;
  bool has_left_ = false;
  bool host_leaves_ = false;
  bool is_closed_ = true;  // until the reader runs
  Error failure_;          // written once, before has_failed_
  std::atomic<bool> has_failed_ = false;
  std::thread reader_;
};

}  // namespace

Result<std::unique_ptr<TcpStore>> TcpStore::join(const Options& options,
                                                 std::unique_ptr<StoreServer> server) {
  TERN_ASSIGN(Fd fd, connect_until(options));
  auto client = std::make_unique<Client>(options, std::move(fd), std::move(server));
  TERN_TRY(client->start(options.deadline));
  return std::unique_ptr<TcpStore>(std::move(client));
}

}  // namespace tern
