#include "runtime/transport/tcp_stream.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace tern::tcp {
namespace {

/// Of a payload, read together with its header; the rest goes by itself.
constexpr size_t kFirstPart = 64 << 10;
/// Read ahead behind a payload of at most kFirstPart: the small frames that follow.
constexpr size_t kAhead = 4 << 10;
/// At most so much at once, so that a rank that sends and receives does both.
constexpr size_t kPart = 1 << 20;

}  // namespace

// ---- both

void Stream::open(Fd fd) {
  fd_ = std::move(fd);
  state_ = StreamState::kOpen;
}

void Stream::stopped(ssize_t n, int code) {
  if (n < 0 && (code == EAGAIN || code == EINTR)) return;
  state_ = StreamState::kBroken;
  why_ = n == 0 ? "the other end closed it" : system_text(code);
}

void Stream::answer_goodbye() const {
  const FrameHeader goodbye{kGoodbye, {}};
  static_cast<void>(::send(fd(), &goodbye, sizeof goodbye, MSG_NOSIGNAL | MSG_DONTWAIT));
}

// ---- sending

struct Outgoing::State {
  SendRequest* next = nullptr;  ///< posted later
  size_t n_sent = 0;            ///< of header and payload
  bool is_done = false;

  static State& make(SendRequest& r) { return *new (r.state.data()) State(); }
  static State& of(SendRequest& r) { return *std::launder(reinterpret_cast<State*>(r.state.data())); }
  static const State& of(const SendRequest& r) {
    return *std::launder(reinterpret_cast<const State*>(r.state.data()));
  }
};

void Outgoing::open(Fd fd, std::string greeting) {
  Stream::open(std::move(fd));
  greeting_ = std::move(greeting);
}

bool Outgoing::is_done(const SendRequest& request) {
  return State::of(request).is_done;
}

void Outgoing::post(SendRequest& request) {
  static_assert(sizeof(State) <= sizeof(SendRequest::state));
  State::make(request);
  (first_ == nullptr ? first_ : State::of(*last_).next) = &request;
  last_ = &request;
}

void Outgoing::post_goodbye() {
  post(goodbye_);
}

size_t Outgoing::progress() {
  size_t n_done = 0;
  while (first_ != nullptr && state() == StreamState::kOpen && write_some()) {
    while (first_ != nullptr && State::of(*first_).n_sent == sizeof(FrameHeader) + first_->n_bytes) {
      State::of(*std::exchange(first_, State::of(*first_).next)).is_done = true;
      ++n_done;
    }
  }
  return n_done;
}

/// False when the socket took nothing, or not all.
bool Outgoing::write_some() {
  const SendRequest& request = *first_;
  const FrameHeader header{first_ == &goodbye_ ? kGoodbye : request.n_bytes, request.envelope};
  const size_t n_sent = State::of(request).n_sent;
  const size_t of_header = std::min(n_sent, sizeof header);
  const size_t of_payload = n_sent - of_header;
  const auto part = [](const void* data, size_t from, size_t n_bytes) {
    // The system only reads there.
    return iovec{const_cast<char*>(static_cast<const char*>(data)) + from, n_bytes};  // NOLINT
  };
  std::array<iovec, 3> parts = {
      part(greeting_.data(), 0, greeting_.size()), part(&header, of_header, sizeof header - of_header),
      part(request.data, of_payload, std::min(request.n_bytes - of_payload, kPart))};
  msghdr message = {};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t n = ::sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n <= 0) {
    stopped(n, errno);
    return false;
  }
  advance(static_cast<size_t>(n));
  return static_cast<size_t>(n) == parts[0].iov_len + parts[1].iov_len + parts[2].iov_len;
}

void Outgoing::advance(size_t n_bytes) {
  const size_t of_greeting = std::min(n_bytes, greeting_.size());
  greeting_.erase(0, of_greeting);
  State::of(*first_).n_sent += n_bytes - of_greeting;
}

void Outgoing::look_for_goodbye() {
  FrameHeader header;
  const ssize_t n = ::recv(fd(), &header, sizeof header, MSG_DONTWAIT);
  if (n == sizeof header && header.n_bytes == kGoodbye)
    end();
  else
    stopped(n, errno);
}

// ---- receiving

struct Incoming::State {
  RecvRequest* next = nullptr;  ///< posted later
  bool is_done = false;

  static State& make(RecvRequest& r) { return *new (r.state.data()) State(); }
  static State& of(RecvRequest& r) { return *std::launder(reinterpret_cast<State*>(r.state.data())); }
  static const State& of(const RecvRequest& r) {
    return *std::launder(reinterpret_cast<const State*>(r.state.data()));
  }
};

void Incoming::open(Fd fd) {
  Stream::open(std::move(fd));
  // Not initialised: what is not used is not there.
  read_.reset(new std::byte[kFirstPart + kAhead]);
}

bool Incoming::is_done(const RecvRequest& request) {
  return State::of(request).is_done;
}

size_t Incoming::post(RecvRequest& request) {
  static_assert(sizeof(State) <= sizeof(RecvRequest::state));
  TERN_CHECK(request.into != nullptr || request.n_bytes == 0);  // see RecvRequest::into
  State::make(request);
  (first_ == nullptr ? first_ : State::of(*last_).next) = &request;
  last_ = &request;
  return n_read() > 0 && first_ == last_ ? take_read() : 0;
}

size_t Incoming::progress() {
  if (first_ == nullptr || state() != StreamState::kOpen || !read_some()) return 0;
  return take_read();
}

/// Hands out what has been read. What is left then is less than the first receive needs, or there is none.
size_t Incoming::take_read() {
  size_t n_done = 0;
  while (first_ != nullptr && state() == StreamState::kOpen && (has_header_ || take_header())) {
    const size_t n = std::min(n_read(), header_.n_bytes - n_got_);
    if (n > 0 && !is_dropped_)
      std::memcpy(static_cast<std::byte*>(first_->into) + n_got_, read_.get() + begin_, n);
    n_got_ += n;
    begin_ += n;
    if (n_got_ < header_.n_bytes) break;
    finish();
    ++n_done;
  }
  return n_done;
}

bool Incoming::take_header() {
  if (n_read() < sizeof header_) return false;
  std::memcpy(&header_, read_.get() + begin_, sizeof header_);
  begin_ += sizeof header_;
  start_frame();
  return has_header_;
}

void Incoming::start_frame() {
  if (header_.n_bytes == kGoodbye) return end();
  has_header_ = true;
  is_dropped_ = header_.n_bytes != first_->n_bytes;
  n_got_ = 0;
}

void Incoming::finish() {
  RecvRequest& request = *std::exchange(first_, State::of(*first_).next);
  request.envelope = header_.envelope;
  if (is_dropped_)
    request.n_bytes = header_.n_bytes;
  else
    request.data = request.into != nullptr ? request.into : &request;  // nothing to see, but not null
  State::of(request).is_done = true;
  has_header_ = false;
}

/// False when nothing came.
bool Incoming::read_some() {
  if (has_header_) return read_payload();
  if (n_read() == 0) return read_frame();
  // A part of a header.
  std::memmove(read_.get(), read_.get() + begin_, n_read());
  end_ = n_read();
  begin_ = 0;
  const ssize_t n = ::recv(fd(), read_.get() + end_, kAhead - end_, MSG_DONTWAIT);
  if (n > 0)
    end_ += static_cast<size_t>(n);
  else
    stopped(n, errno);
  return n > 0;
}

/// Reads a header, and in the same call the payload to where it belongs if it is what is expected.
bool Incoming::read_frame() {
  const size_t room = std::min(first_->n_bytes, kFirstPart);
  const size_t ahead = first_->n_bytes <= kFirstPart ? kAhead : 0;
  std::array<iovec, 3> parts = {iovec{&header_, sizeof header_}, iovec{first_->into, room},
                                iovec{read_.get() + kFirstPart, ahead}};
  msghdr message = {};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t n = ::recvmsg(fd(), &message, MSG_DONTWAIT);
  if (n <= 0) {
    stopped(n, errno);
    return false;
  }
  const auto got = static_cast<size_t>(n);
  begin_ = 0;
  end_ = std::min(got, sizeof header_);
  if (got < sizeof header_) {
    std::memcpy(read_.get(), &header_, got);
    return true;
  }
  const size_t of_payload = std::min(got - sizeof header_, room);
  const size_t behind = got - sizeof header_ - of_payload;
  begin_ = kFirstPart;
  end_ = begin_ + behind;
  start_frame();
  if (has_header_ && !is_dropped_) {
    n_got_ = of_payload;
  } else if (of_payload > 0) {  // what lies at `into` is of another frame than thought, or of later ones
    begin_ -= of_payload;
    std::memcpy(read_.get() + begin_, first_->into, of_payload);
  }
  return true;
}

bool Incoming::read_payload() {
  const size_t left = header_.n_bytes - n_got_;
  begin_ = end_ = 0;
  ssize_t n = 0;
  if (is_dropped_) {
    n = ::recv(fd(), nullptr, left, MSG_DONTWAIT | MSG_TRUNC);  // TCP throws the bytes away
  } else {
    std::array<iovec, 2> parts = {
        iovec{static_cast<std::byte*>(first_->into) + n_got_, std::min(left, kPart)},
        iovec{read_.get(), left <= kPart ? kAhead : 0}};
    msghdr message = {};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    n = ::recvmsg(fd(), &message, MSG_DONTWAIT);
  }
  if (n <= 0) {
    stopped(n, errno);
    return false;
  }
  const size_t of_payload = std::min(static_cast<size_t>(n), left);
  n_got_ += of_payload;
  end_ = static_cast<size_t>(n) - of_payload;
  return true;
}

}  // namespace tern::tcp
