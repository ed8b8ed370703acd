// Sizes as people write them: "64k", "1G", "4MiB", "inf". Used by settings, command lines and the plan
// grammar.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tern {

/// What "inf" means: larger than every message.
inline constexpr uint64_t kInfiniteSize = std::numeric_limits<uint64_t>::max();

/// Bytes for a whole number with an optional binary suffix (k, M, G, T in either case, then optionally "B" or
/// "iB"), or "inf". Errors: kInvalidArgument (not a size, or above 2^64 - 2).
Result<uint64_t> parse_size(std::string_view text);

/// The shortest text that parse_size reads back to the same number: 65536 -> "64k", 1000 -> "1000".
std::string format_size(uint64_t n_bytes);

}  // namespace tern
