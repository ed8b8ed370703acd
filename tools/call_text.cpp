#include "tools/call_text.h"

#include <fmt/ranges.h>

#include <array>
#include <vector>

#include "runtime/base/size.h"

namespace tern::tools {

std::string size_text(uint64_t n_bytes) {
  const std::string text = format_size(n_bytes);
  return text + (n_bytes > 0 && n_bytes % 1024 == 0 ? "iB" : "B");
}

std::string amount_text(double n_bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; n_bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) n_bytes /= 1024;
  return fmt::format("{:.{}f} {}", n_bytes, unit == 0 ? 0 : 2, kUnits[unit]);
}

std::string segment_text(size_t segment_bytes) {
  return segment_bytes == 0 ? "uncut" : size_text(segment_bytes);
}

std::string call_text(Collective collective, uint64_t n_bytes) {
  if (collective == Collective::kBarrier) return std::string(name(collective));
  return fmt::format("{} of {}", name(collective), size_text(n_bytes));
}

Result<int> root_of(Collective collective, const std::optional<int>& root) {
  if (!root || has_root(collective)) return root.value_or(0);
  std::vector<std::string_view> rooted;
  for (int c = 0; c < kNumCollectives; ++c)
    if (has_root(static_cast<Collective>(c))) rooted.push_back(name(static_cast<Collective>(c)));
  return error(Code::kInvalidArgument, "--root {}: {} has no root; those that have: {}", *root,
               name(collective), fmt::join(rooted, ", "));
}

}  // namespace tern::tools
