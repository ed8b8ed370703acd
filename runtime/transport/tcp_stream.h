// The two directions between this rank and another: a socket each, on which frames follow each other. A frame
// is a header of 24 bytes and the payload.
//
// Messages between two ranks match in order, so the next frame always belongs to the first receive that is
// posted: its payload is read from the socket to its place. Nothing is read for which no receive is posted,
// so what nobody expects waits in the system's buffers and in time holds the sender up.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/handle.h"
#include "runtime/transport/transport.h"

namespace tern::tcp {

/// On the wire; ranks of one job run one build on machines of one byte order.
struct FrameHeader {
  uint64_t n_bytes = 0;  ///< of the payload; kGoodbye: no frame follows
  Envelope envelope;
};
inline constexpr uint64_t kGoodbye = ~uint64_t{0};

enum class StreamState : uint8_t {
  kAbsent,  ///< no socket yet
  kOpen,
  kEnded,   ///< by a goodbye
  kBroken,  ///< why() says more
};

/// What both directions have.
class Stream {
 public:
  StreamState state() const { return state_; }
  const std::string& why() const { return why_; }
  int fd() const { return fd_.get(); }
  /// Says goodbye on the socket of the other direction, where there is none in this one. Does not wait.
  void answer_goodbye() const;

 protected:
  void open(Fd fd);
  /// Of a read or write that moved no bytes: nothing to do at present, or the end.
  void stopped(ssize_t n, int code);
  void end() { state_ = StreamState::kEnded; }

 private:
  Fd fd_;
  StreamState state_ = StreamState::kAbsent;
  std::string why_;
};

/// Frames to another rank. The requests posted stay in place until they are done.
class Outgoing : public Stream {
 public:
  void open(Fd fd, std::string greeting);
  void post(SendRequest& request);
  /// After the frames posted so far.
  void post_goodbye();
  static bool is_done(const SendRequest& request);
  bool is_pending() const { return first_ != nullptr; }
  /// Forgets the requests. Only a stream that had none can say goodbye then.
  void abandon() { first_ = nullptr; }
  /// Writes what the socket takes; at most two system calls when it takes nothing. Returns how many requests
  /// were done.
  size_t progress();
  /// The other rank, which never sent anything, may say goodbye on this socket.
  void look_for_goodbye();

 private:
  struct State;
  bool write_some();
  void advance(size_t n_bytes);

  SendRequest* first_ = nullptr;  // posted, not done
  SendRequest* last_ = nullptr;
  SendRequest goodbye_;
  std::string greeting_;  // what is left of it
};

/// Frames from another rank. The requests posted stay in place until they are done.
class Incoming : public Stream {
 public:
  void open(Fd fd);
  /// Also takes its frame when that has been read already; returns how many requests were done.
  size_t post(RecvRequest& request);
  static bool is_done(const RecvRequest& request);
  bool is_pending() const { return first_ != nullptr; }
  /// Forgets the requests.
  void abandon() { first_ = nullptr; }
  /// Reads what is there for the first receive; one system call. Returns how many requests were done.
  size_t progress();

 private:
  struct State;
  size_t take_read();
  bool take_header();
  void start_frame();
  bool read_some();
  bool read_frame();
  bool read_payload();
  void finish();
  size_t n_read() const { return end_ - begin_; }

  RecvRequest* first_ = nullptr;  // posted, not done; in order
  RecvRequest* last_ = nullptr;
  FrameHeader header_;  // of the frame that comes
  bool has_header_ = false;
  bool is_dropped_ = false;            // the frame is not of the size expected
  size_t n_got_ = 0;                   // of its payload
  std::unique_ptr<std::byte[]> read_;  // bytes read ahead: [begin_, end_)
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace tern::tcp
