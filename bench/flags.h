// How the programs of this folder read their flags.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <span>
#include <string>

#include "runtime/base/status.h"

namespace tern::bench {

/// For an app without flags yet: the help shows defaults, and of a flag that comes twice the last counts, as
/// in nccl-tests (a flag that takes a list gathers them).
void prepare_flags(CLI::App& app);

/// Reads the flags into what the app's options point at. args: with the program's name first.
/// Returns: the help's text when it was asked for, else nothing.
/// Errors: kInvalidArgument naming the flag, its value and what is allowed.
Result<std::string> parse_flags(CLI::App& app, std::span<const char* const> args);

/// The whole of that for a program of one process: prints the help, or one sentence on stderr. Returns the
/// exit status when the program ends with that: 0 or 2.
std::optional<int> end_at_flags(CLI::App& app, std::span<const char* const> args);

}  // namespace tern::bench
