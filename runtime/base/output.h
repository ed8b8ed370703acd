// A program's output: whether all of it arrived.
#pragma once

#include <cstdio>
#include <functional>
#include <string_view>

#include "runtime/base/status.h"

namespace tern {

/// Writes out what `file` buffers. Errors: kIo when any write to it failed since it was opened (a full disk,
/// say).
Status flush_output(std::FILE* file);

/// Runs `body` as a program's whole work: its exit status, or 1 with one sentence on stderr when it throws or
/// when stdout did not take its output.
int guarded_main(std::string_view program, const std::function<int()>& body);

}  // namespace tern
