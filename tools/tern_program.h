// The command line of tern.
#pragma once

#include <cstdio>
#include <span>

namespace tern::tools {

/// Runs `tern SUBCOMMAND ...`; the answer goes to `out`, one sentence about what is wrong to stderr. args:
/// with the program's name first. Returns the exit status: 0, 1 (no answer) or 2 (wrong flags).
int run_tern(std::span<const char* const> args, std::FILE* out);

}  // namespace tern::tools
