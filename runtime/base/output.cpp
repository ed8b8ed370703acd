#include "runtime/base/output.h"

#include <cerrno>
#include <exception>

namespace tern {

Status flush_output(std::FILE* file) {
  const int flushed = std::fflush(file);
  if (flushed == 0 && std::ferror(file) == 0) return {};
  return error(Code::kIo, "the output could not be written{}{}", flushed != 0 ? ": " : "",
               flushed != 0 ? system_text(errno) : std::string());
}

int guarded_main(std::string_view program, const std::function<int()>& body) {
  std::string problem;
  int status = 1;
  try {
    status = body();
    if (const Status written = flush_output(stdout); !written.ok()) problem = written.error().message;
  } catch (const std::exception& e) {
    problem = e.what();
  }
  if (problem.empty()) return status;
  const std::string line = fmt::format("{}: {}\n", program, problem);
  std::fwrite(line.data(), 1, line.size(), stderr);
  return status == 0 ? 1 : status;
}

}  // namespace tern
