// <collective>_perf: the collective is the program's compile definition, so that a new row of
// perf_collective.cpp needs no source file.
#include <vector>

#include "bench/perf_run.h"
#include "runtime/base/output.h"

int main(int argc, char** argv) {
  const auto collective = tern::bench::find_perf_collective(TERN_PERF_COLLECTIVE);
  if (!collective.ok()) {
    std::fprintf(stderr, "%s\n", collective.error().message.c_str());
    return 2;
  }
  const std::vector<const char*> args(argv, argv + argc);
  return tern::guarded_main(TERN_PERF_COLLECTIVE "_perf",
                            [&] { return tern::bench::run_perf(**collective, args, stdout); });
}
