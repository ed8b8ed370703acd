#include "kernels/simt/memory.h"

#include <fmt/format.h>

#include <functional>
#include <string_view>

#include "kernels/simt/shape.h"

namespace tern::simt {
namespace {

std::string_view verb(AccessKind kind) {
  constexpr std::string_view kVerbs[] = {"reads", "writes", "atomically changes"};
  return kVerbs[static_cast<size_t>(kind)];
}

}  // namespace

bool Stamp::ordered_with(const Stamp& other) const {
  if (thread == kNobody || other.thread == kNobody) return true;
  if (block != other.block) return false;
  if (thread == other.thread || n_barriers != other.n_barriers) return true;
  return thread / kWarpSize == other.thread / kWarpSize && n_warp_syncs != other.n_warp_syncs;
}

Range::Range(std::string name, std::span<const std::byte> bytes, bool writable)
    : name_(std::move(name)), bytes_(bytes), writable_(writable), notes_(bytes.size()) {
  forget(true);
}

bool Range::contains(const void* at) const {
  const auto* byte = static_cast<const std::byte*>(at);
  const std::less<> before;  // pointers into different buffers
  return !before(byte, bytes_.data()) && before(byte, bytes_.data() + bytes_.size());
}

std::optional<std::string> Range::touch(const Access& access, const Stamp& who) {
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(access.at) - bytes_.data());
  if (offset + access.n_bytes > bytes_.size())
    return fmt::format("{} {} bytes at byte {} of {}, which has {}", verb(access.kind), access.n_bytes,
                       offset, name_, bytes_.size());
  if (access.kind != AccessKind::kRead && !writable_)
    return fmt::format("{} {}, which is an input", verb(access.kind), name_);
  for (size_t i = offset; i < offset + access.n_bytes; ++i) {
    if (auto wrong = touch_byte(notes_[i], access.kind, who))
      return fmt::format("{} byte {} of {}, {}", verb(access.kind), i, name_, *wrong);
  }
  return std::nullopt;
}

std::optional<std::string> Range::touch_byte(Note& note, AccessKind kind, const Stamp& who) const {
  const bool both_atomic = kind == AccessKind::kAtomic && note.atomic;
  if (!both_atomic && !who.ordered_with(note.write))
    return fmt::format("a race with thread {} of block {}, which wrote it", note.write.thread,
                       note.write.block);
  if (kind == AccessKind::kRead) {
    if (!note.written) return "which no thread of the block has written";
    if (note.read.thread != who.thread || note.read.block != who.block) note.earlier_read = note.read;
    note.read = who;
    return std::nullopt;
  }
  for (const Stamp& read : {note.read, note.earlier_read}) {
    if (!who.ordered_with(read))
      return fmt::format("a race with thread {} of block {}, which read it", read.thread, read.block);
  }
  if (kind == AccessKind::kAtomic && !note.written) return "which no thread of the block has written";
  note.write = who;
  note.atomic = kind == AccessKind::kAtomic;
  note.written = true;
  return std::nullopt;
}

void Range::forget(bool written) {
  for (Note& note : notes_) note = {.written = written};
}

std::optional<std::string> Memory::touch(const Access& access, const Stamp& who) {
  for (Range& range : ranges_) {
    if (range.contains(access.at)) return range.touch(access, who);
  }
  return fmt::format("{} {} bytes that belong to none of the kernel's buffers", verb(access.kind),
                     access.n_bytes);
}

void Memory::forget() {
  for (Range& range : ranges_) range.forget(true);
}

}  // namespace tern::simt
