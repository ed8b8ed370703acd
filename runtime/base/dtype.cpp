#include "runtime/base/dtype.h"

#include <fmt/ranges.h>

namespace tern {

Result<Dtype> parse_dtype(std::string_view text) {
  std::string allowed;
  for (const auto& row : kDtypes) {
    if (text == row.name || text == row.nccl_name) return row.dtype;
    allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", row.name);
    if (row.nccl_name != row.name) allowed += fmt::format(" ({})", row.nccl_name);
  }
  return error(Code::kInvalidArgument, "unknown dtype \"{}\"; allowed: {}", text, allowed);
}

Result<Op> parse_op(std::string_view text) {
  for (size_t i = 0; i < kOpNames.size(); ++i) {
    if (text == kOpNames[i]) return static_cast<Op>(i);
  }
  return error(Code::kInvalidArgument, "unknown reduction \"{}\"; allowed: {}", text,
               fmt::join(kOpNames, ", "));
}

}  // namespace tern
