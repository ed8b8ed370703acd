// Ranks as real processes, for tests that kill one.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <exception>
#include <functional>
#include <utility>

#include "runtime/base/status.h"

namespace tern {

/// A forked child that runs a function and exits with what it returns (99 when it throws). Fork before the
/// test starts threads. Move-only; the destructor kills what still runs.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<int()>& body) : pid_(fork()) {
    TERN_CHECK(pid_ >= 0);
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing outlives a test program that is killed
    int rc = 99;
    try {
      rc = body();
    } catch (const std::exception&) {
    }
    _exit(rc);
  }
  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess() {
    if (pid_ <= 0) return;
    kill();
    wait();
  }

  void kill() const { ::kill(pid_, SIGKILL); }
  /// The exit status; -signal when it was killed.
  int wait() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

}  // namespace tern
