// tern: see tern_program.h.
#include <vector>

#include "runtime/base/output.h"
#include "tools/tern_program.h"

int main(int argc, char** argv) {
  const std::vector<const char*> args(argv, argv + argc);
  return tern::guarded_main("tern", [&] { return tern::tools::run_tern(args, stdout); });
}
