#include "bench/perf_buffer.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace tern::bench {
namespace {

constexpr std::byte kFenceByte{0xA5};
constexpr size_t kAlignment = 64;

size_t changed(const std::byte* fence, size_t n) {
  return n - static_cast<size_t>(std::count(fence, fence + n, kFenceByte));
}

}  // namespace

Result<PerfBuffer> PerfBuffer::create(Communicator& comm, const Shape& shape) {
  PerfBuffer buffer;
  const size_t n_bytes = shape.n_bytes + shape.offset + 2 * kFence;
  if (shape.shared) {
    TERN_ASSIGN(buffer.shared_, comm.allocate(n_bytes));
    buffer.start_ = static_cast<std::byte*>(buffer.shared_.data()) + shape.offset;
    return buffer;
  }
  try {
    buffer.plain_.resize(n_bytes + kAlignment);
  } catch (const std::bad_alloc&) {
    return error(Code::kOutOfMemory, "no memory for a buffer of {} bytes", n_bytes);
  }
  void* start = buffer.plain_.data();
  size_t room = buffer.plain_.size();
  buffer.start_ = static_cast<std::byte*>(std::align(kAlignment, n_bytes, start, room)) + shape.offset;
  return buffer;
}

void PerfBuffer::raise_fences(size_t n_bytes) {
  std::memset(start_, static_cast<int>(kFenceByte), kFence);
  std::memset(data() + n_bytes, static_cast<int>(kFenceByte), kFence);
}

size_t PerfBuffer::broken_fence_bytes(size_t n_bytes) const {
  return changed(start_, kFence) + changed(start_ + kFence + n_bytes, kFence);
}

}  // namespace tern::bench
