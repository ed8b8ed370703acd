// Recursive splitting of the ranks into parts, of any number of ranks: what `halving_doubling` and
// `recursive_multiplying` share.
#pragma once

#include "runtime/plan/registry.h"

namespace tern::splitting {

inline constexpr int kMaxRadix = 4;

/// A group of ranks [lo, hi) owns the chunks [lo, hi). It splits in `radix` parts, as equal as can be; every
/// rank sends each other part's chunks to its partner there, the rank with its own place in the part, and
/// adds what it gets to its own part's; then each part goes on alone, until rank r has chunk r. Where parts
/// differ by one rank, the one too many gives its share to the last rank of the smaller part and gets none,
/// so that no rank count needs a round or a copy of its own. all_gather runs the same exchanges backwards;
/// all_reduce both.
///
/// radix: 2 to kMaxRadix. collectives: all_reduce, reduce_scatter, all_gather.
Plan build(const PlanRequest& request, std::string_view algorithm, int radix);

}  // namespace tern::splitting
