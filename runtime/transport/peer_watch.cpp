#include "runtime/transport/peer_watch.h"

#include <sys/syscall.h>

namespace tern {

bool PeerWatch::add(int rank, pid_t pid) {
  if (pid == ::getpid()) return true;
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd) return false;
  ranks_.push_back(rank);
  polled_.push_back({.fd = fd.get(), .events = POLLIN, .revents = 0});
  fds_.push_back(std::move(fd));
  return true;
}

std::optional<int> PeerWatch::ended() {
  if (polled_.empty() || ::poll(polled_.data(), polled_.size(), 0) <= 0) return std::nullopt;
  for (size_t i = 0; i < polled_.size(); ++i) {
    if (polled_[i].fd < 0 || polled_[i].revents == 0) continue;
    polled_[i].fd = -1;  // poll(2) skips negative descriptors
    return ranks_[i];
  }
  return std::nullopt;
}

}  // namespace tern
