// Row-major matrices whose rows may lie apart: the shape of every activation.
#pragma once

#include <cstdint>
#include <type_traits>

#include "trainer/kernels/team.h"

namespace tern::trainer {

/// `rows` rows of `width` elements, `stride` elements from one to the next. A view; trivially copyable.
template <class T>
struct Rows {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t stride = 0;

  T* row(int64_t i) const { return data + i * stride; }
  Rows part(Range range) const { return {row(range.begin), range.size(), width, stride}; }
  Rows columns(int64_t first, int64_t n) const { return {data + first, rows, n, stride}; }
  operator Rows<const T>() const  // NOLINT(google-explicit-constructor): a view of T is a view of const T
      requires(!std::is_const_v<T>) {
    return {data, rows, width, stride};
  }
};

/// The stride to give rows of `width` elements: a multiple of 1 KiB would put the same column of all rows
/// into a few sets of a cache. Padding by one line made the gradient of a 2048 x 384 weight 1.8 times as fast
/// (bench/model_perf --intermediate 1024, AVX-512, 48 KiB of L1).
template <class T>
constexpr int64_t row_stride(int64_t width) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  return width % (16 * kLine) == 0 ? width + kLine : width;
}

}  // namespace tern::trainer
