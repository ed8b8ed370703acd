// What a collective must leave in its outputs; the last step of verify().
#pragma once

#include <string>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/plan/symbolic.h"

namespace tern {

/// The results that the plans of a world owe; made once, whatever memory they run in.
class Due {
 public:
  /// rank_order: sums must be taken in rank order in one pass.
  Due(const Plan& plan, bool rank_order);

  /// What is wrong with output chunk `chunk` of plan's rank; empty when it is right. reference: the same
  /// chunk on rank 0, which decides how results that all ranks have are computed.
  std::string wrong_with(const Plan& plan, int chunk, const symbolic::Value& got,
                         const symbolic::Value& reference) const;

 private:
  std::string difference(const symbolic::Value& got, int chunk) const;

  int n_ranks_;
  bool is_sum_, is_on_all_, rank_order_;
  std::vector<uint64_t> sum_;   // by chunk
  std::vector<uint64_t> form_;  // by chunk, of the sum in rank order
};

}  // namespace tern
