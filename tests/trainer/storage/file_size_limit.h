// A disk that is full, without filling one.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace tern::trainer {

/// A limit on the size of written files, as a full disk would be; lifted at the end.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t n_bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {n_bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_ = {};
};

}  // namespace tern::trainer
