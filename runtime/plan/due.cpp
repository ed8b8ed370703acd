#include "runtime/plan/due.h"

namespace tern {
namespace {

using symbolic::contribution;
using symbolic::Value;

// The rank whose contribution alone an output chunk holds, where nothing is summed.
int source_of(const Plan& plan, int chunk) {
  switch (plan.collective) {
    case Collective::kAllGather:
    case Collective::kGather:
    case Collective::kAllToAll:
      return chunk / (plan.n_chunks / plan.n_ranks);
    case Collective::kSendRecv:
      return (plan.rank + plan.n_ranks - 1) % plan.n_ranks;
    default:
      return plan.root;
  }
}

}  // namespace

Due::Due(const Plan& plan, bool rank_order)
    : n_ranks_(plan.n_ranks),
      is_sum_(reduces(plan.collective)),
      is_on_all_(plan.collective == Collective::kAllReduce || plan.collective == Collective::kAllGather ||
                 plan.collective == Collective::kBroadcast),
      rank_order_(rank_order && is_sum_) {
  if (!is_sum_) return;
  for (int c = 0; c < plan.n_chunks; ++c) {
    Value all = contribution(0, c);
    for (int r = 1; r < n_ranks_; ++r) all = symbolic::reduced(all, contribution(r, c));
    sum_.push_back(all.sum);
    form_.push_back(n_ranks_ == 1 ? all.form : symbolic::rounded_form(all.form));
  }
}

std::string Due::wrong_with(const Plan& plan, int chunk, const Value& got, const Value& reference) const {
  if (!got.is_written()) return "was never written";
  if (is_sum_) {
    if (got.sum != sum_[static_cast<size_t>(chunk)]) return difference(got, chunk);
    if (rank_order_ && got.form != form_[static_cast<size_t>(chunk)])
      return "is not summed in rank order in one pass";
  } else {
    const int source = source_of(plan, chunk);
    const int label = plan.collective == Collective::kAllToAll ? plan.rank : chunk;
    if (got.sum != contribution(source, label).sum)
      return fmt::format("is not what rank {} has for it", source);
  }
  if (is_on_all_ && got.form != reference.form)
    return "is computed in another order than on rank 0, so that its bits may differ";
  return "";
}

std::string Due::difference(const Value& got, int chunk) const {
  const uint64_t due = sum_[static_cast<size_t>(chunk)];
  for (int r = 0; r < n_ranks_; ++r) {
    const uint64_t one = contribution(r, chunk).sum;
    if (got.sum + one == due) return fmt::format("lacks the contribution of rank {}", r);
    if (got.sum - one == due) return fmt::format("holds the contribution of rank {} once too often", r);
  }
  return "does not hold each due contribution exactly once";
}

}  // namespace tern
