// Single-owner resources: file descriptors, memory maps and whatever else has a "close".
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <utility>

namespace tern {

/// Owns one resource and releases it once. Move-only.
///
/// Traits: `using type = ...` (cheap to copy, comparable), `static type null()`, `static void close(type)
/// noexcept`.
template <class Traits>
class Handle {
 public:
  using type = typename Traits::type;

  Handle() = default;
  explicit Handle(type raw) : raw_(raw) {}
  Handle(Handle&& other) noexcept : raw_(other.release()) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { reset(); }

  const type& get() const { return raw_; }
  bool valid() const { return !(raw_ == Traits::null()); }
  explicit operator bool() const { return valid(); }
  /// Gives the resource up without closing it.
  [[nodiscard]] type release() { return std::exchange(raw_, Traits::null()); }
  /// Closes what is held and takes `raw` over.
  void reset(type raw = Traits::null()) {
    if (const type old = std::exchange(raw_, raw); !(old == Traits::null())) Traits::close(old);
  }

 private:
  type raw_ = Traits::null();
};

struct FdTraits {
  using type = int;
  static constexpr type null() { return -1; }
  static void close(type fd) noexcept { ::close(fd); }
};
/// A file descriptor.
using Fd = Handle<FdTraits>;

struct MappedRange {
  std::byte* data = nullptr;
  size_t n_bytes = 0;
  bool operator==(const MappedRange&) const = default;
  std::span<std::byte> bytes() const { return {data, n_bytes}; }
};
struct MappingTraits {
  using type = MappedRange;
  static constexpr type null() { return {}; }
  static void close(type range) noexcept { ::munmap(range.data, range.n_bytes); }
};
/// A range made by mmap.
using Mapping = Handle<MappingTraits>;

}  // namespace tern
