// What lies in the memory that the ranks of one host share: rings of messages, acknowledgements, bells,
// staging slots.
//
// All of it starts as zero bytes, which is the valid empty state, so nobody has to initialise it and pages
// that are never used are never touched. Size of a region for n ranks:
//   n * 128 (bells) + n^2 * 2176 (rings) + n * max(64, 2n) * 4 KiB (small slots) + n * at most 32 MiB (large
//   slots; shm only)
// For instance 4 ranks: 35 KiB of rings, 1 MiB of small and 48 MiB of large slots; 64 ranks: 9 MiB, 32 MiB
// and 1.1 GiB. That is address space. Resident is what is under way at once: a rank whose memory comes from
// tern::allocate touches no large slot.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "runtime/transport/transport.h"

namespace tern::mailbox {

static_assert(std::atomic<uint32_t>::is_always_lock_free, "atomics in shared memory must be address-free");

/// Two cache lines: x86 fetches lines in pairs, so neighbours within a pair would share misses.
inline constexpr size_t kLinePair = 128;

/// Messages of one direction between two ranks that may be under way or unreleased.
inline constexpr uint32_t kRingSlots = 16;

/// Payloads up to this travel inside the slot; those up to 32 bytes share the line of its turn word.
inline constexpr size_t kInlineBytes = 96;

/// Payloads up to this are copied by the sender even from shared memory: the copy (about 0.1 us) costs less
/// than making the send wait for the receiver to have read it.
inline constexpr size_t kSmallBytes = 4096;

/// Staged messages that only land somewhere go in pieces of this size: the receiver copies one out while the
/// sender copies the next in, and both find it in a second-level cache. Measured on a 2-core Xeon with 2 MiB
/// of that: bench/compare --ranks 2 --collectives broadcast,all_gather.
inline constexpr size_t kPieceBytes = size_t{64} << 10;

/// Messages from here on are read out of the sender's process where that is possible: below, two copies cost
/// less than the system call. Measured as kPieceBytes.
inline constexpr size_t kRemoteBytes = size_t{8} << 10;

enum class Kind : uint32_t {
  kInline,  ///< payload in the slot
  kStaged,  ///< `location` is the offset of a staging slot in the region
  kView,    ///< `location` is relative to the view base of the sender
  kPiece,   ///< as kStaged, `piece_bytes` of the message starting at `piece_offset`
  kRemote,  ///< `location` is an address of the sender's process, to be read through the kernel
};

struct Location {
  uint64_t at;
  uint64_t piece_offset;
  uint64_t piece_bytes;
};

/// One message (or piece of one) from a sender to a receiver. Written by the sender while it owns the slot;
/// the store to `turn` hands it over.
struct alignas(kLinePair) Slot {
  std::atomic<uint32_t> turn;  ///< number of the message in its ring, counted from 1, once the slot is filled
  Kind kind;
  uint64_t n_bytes;  ///< of the whole message
  Envelope envelope;
  union {
    std::byte payload[kInlineBytes];
    Location location;
  };
};
static_assert(sizeof(Slot) == kLinePair);
static_assert(offsetof(Slot, payload) == 32, "32 payload bytes lie in the line of the turn word");

/// Single producer, single consumer. The receiver reads only the turn word of the slot that comes next; the
/// sender reads only `acks`, and that only when it knows of no free slot or waits for a view to be released.
struct Ring {
  /// acks[i]: number (from 1) of the last message in slot i that the receiver has released. One line, written
  /// by the receiver; one word per slot because views may be released out of order.
  alignas(kLinePair) std::array<std::atomic<uint32_t>, kRingSlots> acks;
  std::array<Slot, kRingSlots> slots;
};
static_assert(sizeof(std::atomic<uint32_t>) * kRingSlots == 64, "all acks in one cache line");
static_assert(sizeof(Ring) == kLinePair * (kRingSlots + 1));

/// True when the receiver has released message `number` (or a later one in the same slot).
inline bool is_released(const std::atomic<uint32_t>& ack, uint32_t number) {
  // seq_cst: also the second half of bell.h's protocol when the sender sleeps; it includes the acquire that
  // lets the sender overwrite what the receiver has read. The difference is taken modulo 2^32, so numbers may
  // wrap.
  return static_cast<int32_t>(ack.load(std::memory_order_seq_cst) - number) >= 0;
}

/// Where a rank sleeps. `armed` is read by every sender, so it changes only around sleeps.
struct alignas(kLinePair) Bell {
  std::atomic<uint32_t> rung;    ///< the futex: counts wake-ups
  std::atomic<uint32_t> armed;   ///< 1: the owner is about to sleep
  std::atomic<uint32_t> closed;  ///< 1: the owner's transport was destroyed in good order
};
static_assert(sizeof(Bell) == kLinePair);

enum FaultState : uint32_t { kNoFault, kFaultBeingWritten, kFault };

/// The first error that any rank published.
struct alignas(kLinePair) Fault {
  std::atomic<uint32_t> state;  ///< FaultState; read by every poll, written once
  Code code;
  int32_t rank;
  uint32_t n_text;
  char text[1008];
};
static_assert(sizeof(Fault) == 1024);

/// Staging slots of one sender and size class.
struct PoolShape {
  uint32_t n_slots = 0;
  size_t slot_bytes = 0;
  constexpr size_t bytes() const { return n_slots * slot_bytes; }
};

/// Where things lie in a region of n ranks, as offsets in bytes. Value type; equal on all ranks.
struct Layout {
  uint32_t n_ranks = 0;
  PoolShape small;
  PoolShape large;  ///< no slots when every rank can read every other's memory

  /// Pools have a slot for every receiver, so that one that does not read cannot block the others, and some
  /// to spare, so that the one receiver of a ring gets enough to overlap copying with reading.
  static constexpr Layout of(uint32_t n, bool has_large) {
    Layout layout{.n_ranks = n, .small = {std::max(64u, 2 * n), kSmallBytes}, .large = {}};
    if (has_large) {
      const uint32_t n_slots = n + 8;
      constexpr size_t kLargest = size_t{1} << 20;
      constexpr size_t kPerSender = size_t{32} << 20;
      layout.large = {n_slots, std::min(kLargest, std::bit_floor(kPerSender / n_slots))};
    }
    return layout;
  }

  static constexpr size_t fault() { return 0; }
  constexpr size_t bell(uint32_t i) const { return fault() + sizeof(Fault) + i * sizeof(Bell); }
  constexpr size_t ring(uint32_t from, uint32_t to) const {
    return bell(n_ranks) + (size_t{to} * n_ranks + from) * sizeof(Ring);
  }
  constexpr size_t small_pool(uint32_t i) const {
    return (ring(0, n_ranks) + kSmallBytes - 1) / kSmallBytes * kSmallBytes + i * small.bytes();
  }
  constexpr size_t large_pool(uint32_t i) const { return small_pool(n_ranks) + i * large.bytes(); }
  constexpr size_t n_bytes() const { return large_pool(n_ranks); }
};
static_assert(Layout::of(4, true).n_bytes() < (size_t{50} << 20));
static_assert(Layout::of(24, true).large.slot_bytes == (size_t{1} << 20));
static_assert(Layout::of(64, true).large.slot_bytes == (size_t{256} << 10));

}  // namespace tern::mailbox
