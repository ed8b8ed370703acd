// A call that is only thought of, in words and from words.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

namespace tern::tools {

/// "64MiB": the binary units that parse_size reads.
std::string size_text(uint64_t n_bytes);

/// "1.98 GiB": an amount in the same units.
std::string amount_text(double n_bytes);

/// "uncut", or the size of a segment.
std::string segment_text(size_t segment_bytes);

/// "all_reduce of 64MiB"; a barrier moves nothing.
std::string call_text(Collective collective, uint64_t n_bytes);

/// --root, 0 where it was not given.
/// Errors: kInvalidArgument (given to a collective that has none).
Result<int> root_of(Collective collective, const std::optional<int>& root);

}  // namespace tern::tools
