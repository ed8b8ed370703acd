// Slots of shared memory that a sender copies messages into when receivers cannot read them where they are.
#pragma once

#include <optional>
#include <vector>

#include "runtime/transport/mailbox_layout.h"

namespace tern::mailbox {

/// The staging slots of one size that this rank lends to its receivers, one message (or piece) each.
///
/// No receiver can take the last slot of one that holds none: messages to different ranks never wait for each
/// other, whatever order the ranks read them in (needs at least as many slots as receivers). Threads: one at
/// a time. Allocates in the constructor only.
class StagingPool {
 public:
  /// When released slots are looked for: `kWarm` before each use (the lowest slots stay in cache; for slots
  /// whose copy costs more than the look), `kLazy` when no slot is known to be free.
  enum class Reuse : uint8_t { kWarm, kLazy };

  struct Place {
    std::byte* region = nullptr;  ///< of all offsets
    size_t offset = 0;            ///< of the pool's first slot
  };

  StagingPool(PoolShape shape, Place place, uint32_t n_receivers, Reuse reuse);

  /// A slot for a message to `receiver`, or nothing until some receiver has released one.
  std::optional<uint32_t> find(uint32_t receiver);
  /// Takes the slot that find() gave until `ack` reaches `number`.
  void lend(uint32_t slot, uint32_t receiver, const std::atomic<uint32_t>& ack, uint32_t number);

  size_t offset(uint32_t slot) const { return place_.offset + slot * shape_.slot_bytes; }
  std::byte* data(uint32_t slot) const { return place_.region + offset(slot); }
  size_t slot_bytes() const { return shape_.slot_bytes; }

 private:
  struct Loan {
    const std::atomic<uint32_t>* ack = nullptr;  ///< null: the slot is free
    uint32_t number = 0;
    uint32_t receiver = 0;
  };

  bool may_take(uint32_t receiver) const;
  void reclaim();

  PoolShape shape_;
  Place place_;
  Reuse reuse_;
  std::vector<Loan> loans_;       // by slot
  std::vector<uint32_t> free_;    // a stack, the slot to use next on top
  std::vector<uint32_t> held_;    // slots lent, by receiver
  uint32_t n_receivers_without_;  // receivers that hold no slot
};

}  // namespace tern::mailbox
