// Lines of text over a Unix socket, between compare and the ranks that it starts.
#pragma once

#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/handle.h"
#include "runtime/base/status.h"

namespace tern::bench {

/// One connected socket. Reading sleeps in poll(), so an idle rank takes no processor time.
class LineSocket {
 public:
  explicit LineSocket(Fd fd) : fd_(std::move(fd)) {}
  /// Errors: kIo when the other end is not there.
  static Result<LineSocket> connect(const std::string& path);

  /// text: without the newline. Errors: kPeerLost.
  Status write_line(std::string text);
  /// Without the newline. Errors: kPeerLost when the other end is gone, kTimeout.
  Result<std::string> read_line(Deadline deadline);

 private:
  Fd fd_;
  std::string pending_;
};

/// Accepts such connections at a path.
class LineListener {
 public:
  /// Errors: kIo naming the path.
  static Result<LineListener> create(const std::string& path);
  /// Errors: kTimeout, kIo.
  Result<LineSocket> accept(Deadline deadline);

 private:
  explicit LineListener(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace tern::bench
