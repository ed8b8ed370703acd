// The memory that a kernel may touch, with a note per byte of who touched it last: how accesses outside of a
// buffer and races are seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tern::simt {

enum class AccessKind : uint8_t { kRead, kWrite, kAtomic };

struct Access {
  const void* at;
  size_t n_bytes;  ///< also the alignment that the hardware asks for
  AccessKind kind;
};

/// When a thread touched a byte: the barriers that its block and the __syncwarp()s that its warp had passed.
struct Stamp {
  static constexpr uint32_t kNobody = UINT32_MAX;
  uint32_t thread = kNobody;  ///< in its block
  uint32_t block = 0;
  uint32_t n_barriers = 0;
  uint32_t n_warp_syncs = 0;

  /// Whether CUDA orders the two: same thread, or same block with a barrier between, or same warp with a
  /// __syncwarp() between. Shuffles and votes order no memory.
  bool ordered_with(const Stamp& other) const;
};

/// One buffer. Two accesses to a byte race when their threads differ, nothing orders them, one writes, and
/// not both are atomic. Of earlier readers the last two different ones are remembered, so that a race with a
/// third may go unseen in one schedule.
class Range {
 public:
  Range(std::string name, std::span<const std::byte> bytes, bool writable);

  bool contains(const void* at) const;
  /// What is wrong with the access, and then, if nothing is, the note that `who` made it.
  std::optional<std::string> touch(const Access& access, const Stamp& who);
  /// Forgets who touched it; with `written` false reads fail until a write comes (shared memory).
  void forget(bool written);

 private:
  struct Note {
    Stamp write, read, earlier_read;
    bool atomic = false;   // the write was
    bool written = false;  // by this launch or before it
  };
  std::optional<std::string> touch_byte(Note& note, AccessKind kind, const Stamp& who) const;

  std::string name_;
  std::span<const std::byte> bytes_;
  bool writable_;
  std::vector<Note> notes_;
};

/// The buffers that the kernel's arguments point into. Names are for messages.
class Memory {
 public:
  template <class T>
  void add_input(std::string name, std::span<const T> buffer) {
    ranges_.emplace_back(std::move(name), std::as_bytes(buffer), false);
  }
  template <class T>
  void add(std::string name, std::span<T> buffer) {
    ranges_.emplace_back(std::move(name), std::as_bytes(buffer), true);
  }

  /// Notes an access, or says what is wrong with it.
  std::optional<std::string> touch(const Access& access, const Stamp& who);
  void forget();

 private:
  std::vector<Range> ranges_;
};

}  // namespace tern::simt
