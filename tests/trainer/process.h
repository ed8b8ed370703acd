// Processes started by a test: their output and their end.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/clock.h"

namespace tern::trainer {

struct Command {
  std::vector<std::string> arguments;    ///< the program first
  std::vector<std::string> environment;  ///< NAME=value, added to this process's
  std::string output;                    ///< file that takes stdout and stderr
};

/// A child that is killed if it still runs when the test lets go of it. Move-only.
class Process {
 public:
  explicit Process(Command command) : command_(std::move(command)) {
    pid_ = ::fork();
    if (pid_ == 0) become();
  }
  Process(Process&& other) noexcept
      : command_(std::move(other.command_)), pid_(std::exchange(other.pid_, -1)) {}
  Process& operator=(Process&&) = delete;
  ~Process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  void signal(int number) const { ::kill(pid_, number); }
  /// The exit code, 128 + the signal that ended it, or -1 when the deadline passed.
  int wait(Deadline deadline) {
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (deadline.passed()) return -1;
      std::this_thread::yield();
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string output() const {
    std::ifstream file(command_.output);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

 private:
  [[noreturn]] void become() {
    const int fd = ::open(command_.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::dup2(fd, STDOUT_FILENO);
    ::dup2(fd, STDERR_FILENO);
    std::vector<std::string> words = {"/usr/bin/env"};
    words.insert(words.end(), command_.environment.begin(), command_.environment.end());
    words.insert(words.end(), command_.arguments.begin(), command_.arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }

  Command command_;
  pid_t pid_ = -1;
};

/// Reads a growing file until `done(contents)` or the deadline; true in the first case.
template <class Predicate>
bool wait_for_file(const std::string& path, Deadline deadline, const Predicate& done) {
  while (!deadline.passed()) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    if (done(text.str())) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace tern::trainer
