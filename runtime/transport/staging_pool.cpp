#include "runtime/transport/staging_pool.h"

namespace tern::mailbox {

StagingPool::StagingPool(PoolShape shape, Place place, uint32_t n_receivers, Reuse reuse)
    : shape_(shape),
      place_(place),
      reuse_(reuse),
      loans_(shape.n_slots),
      held_(n_receivers, 0),
      n_receivers_without_(n_receivers) {
  TERN_CHECK(shape.n_slots == 0 || shape.n_slots >= n_receivers);
  free_.reserve(shape.n_slots);
  for (uint32_t i = shape.n_slots; i > 0; --i) free_.push_back(i - 1);
}

std::optional<uint32_t> StagingPool::find(uint32_t receiver) {
  if (reuse_ == Reuse::kWarm || !may_take(receiver)) reclaim();
  if (!may_take(receiver)) return std::nullopt;
  return free_.back();
}

void StagingPool::lend(uint32_t slot, uint32_t receiver, const std::atomic<uint32_t>& ack, uint32_t number) {
  free_.pop_back();
  loans_[slot] = {&ack, number, receiver};
  if (held_[receiver]++ == 0) --n_receivers_without_;
}

bool StagingPool::may_take(uint32_t receiver) const {
  if (held_[receiver] == 0) return !free_.empty();
  return free_.size() > n_receivers_without_;
}

void StagingPool::reclaim() {
  for (uint32_t slot = shape_.n_slots; slot > 0; --slot) {  // downwards: low slots end on top of the stack
    Loan& loan = loans_[slot - 1];
    if (loan.ack == nullptr || !is_released(*loan.ack, loan.number)) continue;
    if (--held_[loan.receiver] == 0) ++n_receivers_without_;
    loan.ack = nullptr;
    free_.push_back(slot - 1);
  }
}

}  // namespace tern::mailbox
