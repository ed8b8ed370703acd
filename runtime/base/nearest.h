// "Did you mean ...?": the known name nearest to a wrong one.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tern {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`; cost |a| * |b|.
/// Source: Damerau, CACM 1964 (optimal string alignment form).
size_t edit_distance(std::string_view a, std::string_view b);

/// How far `wrong` is from a name that it may be a typing error of; nothing when it is none: at most a third
/// of its letters are wrong, or it begins the name but for as many.
std::optional<size_t> typing_errors(std::string_view wrong, std::string_view name);

/// The name with the fewest typing errors (of equals the shortest, of those the first); empty when `wrong` is
/// like none of them.
std::string_view nearest(std::string_view wrong, std::span<const std::string_view> known);

/// `did you mean "steps"? `, or nothing when no name is near.
std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> known);

}  // namespace tern
