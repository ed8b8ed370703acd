// Trees over the ranks counted from the root whose degree is a parameter: what `tree` and `knomial` share.
#pragma once

#include "runtime/plan/registry.h"

namespace tern::nomial {

/// Rank v (counted from the root) written with `radix`'s digits: its parent is v without its lowest digit
/// that is not 0; with that digit at `level`, it leads the ranks [v, v + radix^level), and its children lead
/// parts of them.
///
/// broadcast, scatter go down the tree, level by level; reduce, gather up; all_reduce and barrier up and
/// down. Runs of chunks that go round the end of the vector are two messages.
///
/// collectives: all_reduce, broadcast, barrier, reduce, gather, scatter.
Plan build(const PlanRequest& request, std::string_view algorithm, int radix);

}  // namespace tern::nomial
