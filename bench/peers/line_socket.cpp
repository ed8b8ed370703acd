#include "bench/peers/line_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace tern::bench {
namespace {

struct UnixSocket {
  Fd fd;
  sockaddr_un address = {};
};

Result<UnixSocket> open_socket(const std::string& path) {
  UnixSocket made;
  made.address.sun_family = AF_UNIX;
  if (path.size() >= sizeof made.address.sun_path)
    return error(Code::kInvalidArgument, "the socket path {} is longer than {} bytes", path,
                 sizeof made.address.sun_path - 1);
  std::memcpy(made.address.sun_path, path.c_str(), path.size() + 1);
  made.fd.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made.fd) return error(Code::kIo, "cannot make a socket: {}", std::generic_category().message(errno));
  return made;
}

Status wait_readable(int fd, Deadline deadline) {
  while (!deadline.passed()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()).count();
    pollfd one = {.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::min<int64_t>(left + 1, 1 << 30)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR)
      return error(Code::kIo, "poll: {}", std::generic_category().message(errno));
  }
  return error(Code::kTimeout, "nothing came in time");
}

}  // namespace

Result<LineSocket> LineSocket::connect(const std::string& path) {
  TERN_ASSIGN(UnixSocket made, open_socket(path));
  if (::connect(made.fd.get(), reinterpret_cast<const sockaddr*>(&made.address), sizeof made.address) != 0)
    return error(Code::kIo, "cannot connect to {}: {}", path, std::generic_category().message(errno));
  return LineSocket(std::move(made.fd));
}

Status LineSocket::write_line(std::string text) {
  text += '\n';
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::send(fd_.get(), text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return error(Code::kPeerLost, "the other end is gone: {}", std::generic_category().message(errno));
    done += static_cast<size_t>(n);
  }
  return {};
}

Result<std::string> LineSocket::read_line(Deadline deadline) {
  while (true) {
    if (const size_t end = pending_.find('\n'); end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    TERN_TRY(wait_readable(fd_.get(), deadline));
    char chunk[4096];
    const ssize_t n = ::recv(fd_.get(), chunk, sizeof chunk, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return error(Code::kPeerLost, "the other end is gone");
    pending_.append(chunk, static_cast<size_t>(n));
  }
}

Result<LineListener> LineListener::create(const std::string& path) {
  TERN_ASSIGN(UnixSocket made, open_socket(path));
  if (::bind(made.fd.get(), reinterpret_cast<const sockaddr*>(&made.address), sizeof made.address) != 0 ||
      ::listen(made.fd.get(), SOMAXCONN) != 0)
    return error(Code::kIo, "cannot listen at {}: {}", path, std::generic_category().message(errno));
  return LineListener(std::move(made.fd));
}

Result<LineSocket> LineListener::accept(Deadline deadline) {
  TERN_TRY(wait_readable(fd_.get(), deadline));
  Fd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) return error(Code::kIo, "accept: {}", std::generic_category().message(errno));
  return LineSocket(std::move(fd));
}

}  // namespace tern::bench
