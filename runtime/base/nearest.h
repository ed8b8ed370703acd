// "Did you mean ...?": the known name nearest to a wrong one.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace tern {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`; cost |a| * |b|.
/// Source: Damerau, CACM 1964 (optimal string alignment form).
size_t edit_distance(std::string_view a, std::string_view b);

/// The name with the least edit distance to `wrong` (the first of equals); empty when `known` is empty.
std::string_view nearest(std::string_view wrong, std::span<const std::string_view> known);

}  // namespace tern
