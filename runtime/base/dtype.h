// Element types by name, and typed runs of elements.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include "runtime/base/element_types.h"
#include "runtime/base/status.h"

namespace tern {

/// Finds a dtype by either of its names; the error lists what is allowed.
Result<Dtype> parse_dtype(std::string_view text);

Result<Op> parse_op(std::string_view text);

/// A typed run of elements that is read; does not own.
struct ConstView {
  const void* data = nullptr;
  size_t n = 0;  ///< elements
  Dtype dtype = Dtype::kFloat32;

  ConstView() = default;
  ConstView(const void* d, size_t count, Dtype t) : data(d), n(count), dtype(t) {}
  template <class T>
  ConstView(std::span<const T> s) : data(s.data()), n(s.size()), dtype(dtype_of<T>()) {}  // NOLINT
  template <class T, std::enable_if_t<!std::is_const_v<T>, int> = 0>
  ConstView(std::span<T> s) : data(s.data()), n(s.size()), dtype(dtype_of<T>()) {}  // NOLINT
  size_t n_bytes() const { return n * size_of(dtype); }
};

/// A typed run of elements that is written; does not own.
struct View {
  void* data = nullptr;
  size_t n = 0;
  Dtype dtype = Dtype::kFloat32;

  View() = default;
  View(void* d, size_t count, Dtype t) : data(d), n(count), dtype(t) {}
  template <class T, std::enable_if_t<!std::is_const_v<T>, int> = 0>
  View(std::span<T> s) : data(s.data()), n(s.size()), dtype(dtype_of<T>()) {}  // NOLINT
  operator ConstView() const { return {data, n, dtype}; }                      // NOLINT
  size_t n_bytes() const { return n * size_of(dtype); }
};

}  // namespace tern
