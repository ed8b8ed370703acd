#include "runtime/base/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace tern {

size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the dynamic programme: two back (for swaps), previous, current.
  std::vector<size_t> two_back(b.size() + 1);
  std::vector<size_t> previous(b.size() + 1);
  std::vector<size_t> current(b.size() + 1);
  std::iota(previous.begin(), previous.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], two_back[j - 2] + 1);
    }
    std::swap(two_back, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

std::optional<size_t> typing_errors(std::string_view wrong, std::string_view name) {
  constexpr size_t kLeastBeginning = 3;
  const size_t most = std::max<size_t>(1, wrong.size() / 3);
  const size_t whole = edit_distance(wrong, name);
  const size_t beginning = edit_distance(wrong, name.substr(0, wrong.size()));
  std::optional<size_t> errors;
  if (beginning <= most && wrong.size() >= kLeastBeginning) errors = beginning + 1;
  if (whole <= most && whole < wrong.size()) errors = std::min(whole, errors.value_or(whole));
  return errors;
}

std::string_view nearest(std::string_view wrong, std::span<const std::string_view> known) {
  std::string_view best;
  size_t fewest = std::numeric_limits<size_t>::max();
  for (const std::string_view name : known) {
    const auto errors = typing_errors(wrong, name);
    if (!errors || *errors > fewest || (*errors == fewest && name.size() >= best.size())) continue;
    best = name;
    fewest = *errors;
  }
  return best;
}

std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> known) {
  const std::string_view near = nearest(wrong, known);
  return near.empty() ? "" : fmt::format("did you mean \"{}\"? ", near);
}

}  // namespace tern
