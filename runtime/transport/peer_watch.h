// Notices that a peer's process has ended.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <optional>
#include <vector>

#include "runtime/base/handle.h"

namespace tern {

/// Watches processes of this host through pidfds (Linux 5.3), which neither miss an end nor confuse a process
/// with a later one of the same number. Ranks of this very process are not watched.
///
/// Threads: one at a time. ended() neither blocks nor allocates.
class PeerWatch {
 public:
  /// False when the process cannot be watched (an old kernel, or it is gone): the store must tell then.
  bool add(int rank, pid_t pid);
  /// A watched rank whose process has ended, once per rank.
  std::optional<int> ended();

 private:
  std::vector<int> ranks_;
  std::vector<Fd> fds_;
  std::vector<pollfd> polled_;
};

}  // namespace tern
