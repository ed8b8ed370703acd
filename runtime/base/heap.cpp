// Best-fit allocator over a memfd. The book-keeping lies outside the shared memory: peers map it and only
// read it.
#include "runtime/base/heap.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "runtime/base/handle.h"

namespace tern {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kSmallAlignment = 64;

/// Freed memory of which the pages are kept, so that a program that allocates and frees in turn does not
/// fault its pages in again each time; beyond it all free pages go back to the system.
constexpr size_t kRetainedBytes = size_t{256} << 20;

constexpr size_t round_up(size_t n, size_t to) {
  return (n + to - 1) / to * to;
}

/// Whole pages for large blocks (their pages can then be given back), huge ones from 2 MiB on (so that the
/// kernel can back them with huge pages where shmem_enabled allows it).
constexpr size_t alignment_of(size_t n_bytes) {
  if (n_bytes >= kHugePage) return kHugePage;
  return n_bytes >= kPage ? kPage : kSmallAlignment;
}

}  // namespace

struct Heap::Impl {
  struct Extent {
    size_t offset = 0;
    size_t n_bytes = 0;
  };

  Fd fd;
  Mapping mapping;

  std::mutex mutex;                                  // guards all below
  std::map<size_t, size_t> free_by_offset;           // offset -> size; neighbours are always merged
  std::set<std::pair<size_t, size_t>> free_by_size;  // (size, offset)
  std::unordered_map<size_t, size_t> used;           // offset -> size
  size_t n_free = 0;
  size_t n_retained = 0;  // bytes freed since pages were last given back, less what was handed out again

  void add_free(Extent extent) {
    free_by_offset.emplace(extent.offset, extent.n_bytes);
    free_by_size.emplace(extent.n_bytes, extent.offset);
  }
  void remove_free(Extent extent) {
    free_by_offset.erase(extent.offset);
    free_by_size.erase({extent.n_bytes, extent.offset});
  }

  /// The smallest free extent that holds n_bytes at the alignment.
  std::optional<Extent> best_fit(size_t n_bytes, size_t alignment) const {
    for (auto it = free_by_size.lower_bound({n_bytes, 0}); it != free_by_size.end(); ++it) {
      const auto [size, offset] = *it;
      if (round_up(offset, alignment) - offset + n_bytes <= size) return Extent{offset, size};
    }
    return std::nullopt;
  }

  /// Hands out `n_bytes` at `at` from the free extent around it; what is left on both sides stays free.
  void take(Extent from, Extent wanted) {
    remove_free(from);
    const size_t before = wanted.offset - from.offset;
    const size_t after = from.n_bytes - before - wanted.n_bytes;
    if (before > 0) add_free({from.offset, before});
    if (after > 0) add_free({wanted.offset + wanted.n_bytes, after});
    used.emplace(wanted.offset, wanted.n_bytes);
    n_free -= wanted.n_bytes;
    n_retained -= std::min(n_retained, wanted.n_bytes);
  }

  void give(Extent extent) {
    n_free += extent.n_bytes;
    auto next = free_by_offset.lower_bound(extent.offset);
    if (next != free_by_offset.begin()) {
      const Extent before{std::prev(next)->first, std::prev(next)->second};
      if (before.offset + before.n_bytes == extent.offset) {
        remove_free(before);
        extent = {before.offset, before.n_bytes + extent.n_bytes};
      }
    }
    if (next != free_by_offset.end() && extent.offset + extent.n_bytes == next->first) {
      const Extent after{next->first, next->second};
      remove_free(after);
      extent.n_bytes += after.n_bytes;
    }
    add_free(extent);
  }

  void return_free_pages() {
    for (const auto& [offset, size] : free_by_offset) {
      const size_t first = round_up(offset, kPage);
      const size_t end = (offset + size) / kPage * kPage;
      if (first >= end) continue;
      // A refusal (a file system without holes) costs memory, not correctness.
      (void)::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
                        static_cast<off_t>(end - first));
    }
    n_retained = 0;
  }
};

Heap::Heap() : impl_(std::make_unique<Impl>()) {}
Heap::~Heap() = default;

Result<std::unique_ptr<Heap>> Heap::create(size_t n_bytes) {
  const size_t size = round_up(std::max<size_t>(n_bytes, 1), kPage);
  auto heap = std::unique_ptr<Heap>(new Heap());
  Impl& impl = *heap->impl_;
  impl.fd.reset(::memfd_create("tern-heap", MFD_CLOEXEC));
  if (!impl.fd)
    return error(Code::kIo, "memfd_create for the shared heap failed: {}",
                 std::system_category().message(errno));
  if (::ftruncate(impl.fd.get(), static_cast<off_t>(size)) != 0) {
    return error(Code::kOutOfMemory, "cannot size the shared heap to {} bytes: {}", size,
                 std::system_category().message(errno));
  }
  void* base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, impl.fd.get(), 0);
  if (base == MAP_FAILED) {
    return error(Code::kOutOfMemory, "cannot map {} bytes for the shared heap: {}", size,
                 std::system_category().message(errno));
  }
  impl.mapping.reset({static_cast<std::byte*>(base), size});
  // Advice only: it takes effect where /sys/kernel/mm/transparent_hugepage/shmem_enabled is "advise".
  (void)::madvise(base, size, MADV_HUGEPAGE);
  impl.add_free({0, size});
  impl.n_free = size;
  return heap;
}

Result<void*> Heap::allocate(size_t n_bytes) {
  Impl& impl = *impl_;
  const size_t asked = std::max<size_t>(n_bytes, 1);
  const std::lock_guard lock(impl.mutex);
  if (asked <= impl.mapping.get().n_bytes) {  // also keeps the rounding below from overflowing
    const size_t size = round_up(asked, asked >= kPage ? kPage : kSmallAlignment);
    const size_t alignment = alignment_of(size);
    auto from = impl.best_fit(size, alignment);
    // A block that fits only unaligned to huge pages is better than none.
    size_t used_alignment = alignment;
    if (!from && alignment > kPage) from = impl.best_fit(size, used_alignment = kPage);
    if (from) {
      const size_t offset = round_up(from->offset, used_alignment);
      impl.take(*from, {offset, size});
      return static_cast<void*>(impl.mapping.get().data + offset);
    }
  }
  const size_t largest = impl.free_by_size.empty() ? 0 : impl.free_by_size.rbegin()->first;
  return error(
      Code::kOutOfMemory,
      "the shared heap cannot give {} bytes: {} of its {} bytes are free, the largest run has {}; raise "
      "TERN_HEAP_BYTES",
      n_bytes, impl.n_free, impl.mapping.get().n_bytes, largest);
}

void Heap::free(void* memory) {
  if (memory == nullptr) return;
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  const auto offset = static_cast<size_t>(static_cast<std::byte*>(memory) - impl.mapping.get().data);
  const auto it = impl.used.find(offset);
  TERN_CHECK(it != impl.used.end());
  const size_t size = it->second;
  impl.used.erase(it);
  impl.give({offset, size});
  impl.n_retained += size;
  if (impl.n_retained > kRetainedBytes) impl.return_free_pages();
}

bool Heap::contains(const void* memory, size_t n_bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(memory);
  const auto first = reinterpret_cast<uintptr_t>(base());
  return at >= first && n_bytes <= size() && at - first <= size() - n_bytes;
}

const std::byte* Heap::base() const {
  return impl_->mapping.get().data;
}
size_t Heap::size() const {
  return impl_->mapping.get().n_bytes;
}
int Heap::fd() const {
  return impl_->fd.get();
}

}  // namespace tern
