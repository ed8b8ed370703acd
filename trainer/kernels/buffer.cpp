#include "trainer/kernels/buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <limits>

namespace tern::trainer {

namespace {
constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;
}  // namespace

template <class T>
void Buffer<T>::Free::operator()(void* p) const {
  std::free(p);  // NOLINT(cppcoreguidelines-no-malloc): this is the owner
}

template <class T>
Result<Buffer<T>> Buffer<T>::create(int64_t n) {
  constexpr auto kMax = std::numeric_limits<int64_t>::max() / static_cast<int64_t>(2 * sizeof(T));
  if (n < 0 || n > kMax) return error(Code::kOutOfMemory, "{} elements do not fit an address space", n);
  const size_t n_bytes = static_cast<size_t>(n) * sizeof(T);
  const size_t alignment = n_bytes >= kHugePage ? kHugePage : kCacheLine;
  const size_t rounded = (n_bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) return error(Code::kOutOfMemory, "no memory for {} bytes", n_bytes);
  // A hint only: a kernel without huge pages serves small ones.
  if (alignment == kHugePage) static_cast<void>(madvise(memory, rounded, MADV_HUGEPAGE));
  std::memset(memory, 0, rounded);
  Buffer buffer;
  buffer.data_.reset(static_cast<T*>(memory));
  buffer.n_ = n;
  return buffer;
}

template class Buffer<float>;
template class Buffer<double>;

}  // namespace tern::trainer
