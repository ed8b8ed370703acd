// A text as a file.
#pragma once

#include <string>

#include "runtime/base/status.h"

namespace tern::tools {

/// Errors: kIo with the system's reason.
Status write_file(const std::string& path, const std::string& text);

}  // namespace tern::tools
