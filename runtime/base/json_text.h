// JSON as people write it (comments allowed) and as files must be (no duplicate keys).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tern {

/// Objects and arrays may nest this deep; deeper text is an attack or an accident.
inline constexpr int kMaxJsonDepth = 64;

/// The value that `text` holds; `//` and `/* */` comments are allowed.
///
/// origin: what the text is ("run.json"), for error sentences.
/// Errors: kInvalidArgument naming line and column of a syntax error, the full path of a duplicate key, or
/// the depth.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view origin);

/// A configuration file's bytes. Errors: kNotFound, kIo; kInvalidArgument (not a file, or above 256 MiB).
Result<std::string> read_text_file(const std::string& path);

/// parse_json() of read_text_file(); the errors of both.
Result<nlohmann::json> read_json_file(const std::string& path);

}  // namespace tern
