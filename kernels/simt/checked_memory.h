// Memory as kernel bodies see it, with every access checked: Global<T>, Shared<T, N>, dynamic_shared<T>().
// kernels/cuda/words_nvcc.cuh has the same without checks, for nvcc.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/simt/block.h"

namespace tern::cuda {

using simt::Block;
using simt::Where;

/// Elements that are moved by one access.
template <class T, int N>
struct alignas(sizeof(T) * N) Vec {
  T at[N];
};

/// Elements in global memory. Every access is checked.
template <class T>
class Global {
  using Value = std::remove_const_t<T>;

 public:
  explicit Global(T* data) : data_(data) {}
  /// Whether element i lies at a multiple of 16 bytes, as load_vector() and store_vector() of 16 bytes ask.
  bool aligned(size_t i) const { return reinterpret_cast<uintptr_t>(data_ + i) % 16 == 0; }
  Value load(size_t i, const Where& where = Where::current()) const {
    touch(i, sizeof(T), simt::AccessKind::kRead, where);
    return data_[i];
  }
  void store(size_t i, Value value, const Where& where = Where::current()) const {
    touch(i, sizeof(T), simt::AccessKind::kWrite, where);
    data_[i] = value;
  }
  /// Elements i .. i + N - 1.
  template <int N>
  Vec<Value, N> load_vector(size_t i, const Where& where = Where::current()) const {
    touch(i, sizeof(T) * N, simt::AccessKind::kRead, where);
    Vec<Value, N> value;
    std::memcpy(&value, data_ + i, sizeof(value));
    return value;
  }
  template <int N>
  void store_vector(size_t i, const Vec<Value, N>& value, const Where& where = Where::current()) const {
    touch(i, sizeof(T) * N, simt::AccessKind::kWrite, where);
    std::memcpy(data_ + i, &value, sizeof(value));
  }
  Value atomic_add(size_t i, Value value, const Where& where = Where::current()) const {
    touch(i, sizeof(T), simt::AccessKind::kAtomic, where);
    return std::exchange(data_[i], static_cast<Value>(data_[i] + value));
  }

 private:
  void touch(size_t i, size_t n_bytes, simt::AccessKind kind, const Where& where) const {
    Block::current().touch_global({data_ + i, n_bytes, kind}, where);
  }
  T* data_;
};

/// Elements in the shared memory of the block: declared with TERN_SHARED, or dynamic_shared<T>().
template <class T>
class SharedSpan {
 public:
  SharedSpan(T* data, size_t n) : data_(data), n_(n) {}
  T load(size_t i, const Where& where = Where::current()) const {
    return *touch(i, simt::AccessKind::kRead, where);
  }
  void store(size_t i, T value, const Where& where = Where::current()) const {
    *touch(i, simt::AccessKind::kWrite, where) = value;
  }
  T atomic_add(size_t i, T value, const Where& where = Where::current()) const {
    T* at = touch(i, simt::AccessKind::kAtomic, where);
    return std::exchange(*at, static_cast<T>(*at + value));
  }
  T atomic_max(size_t i, T value, const Where& where = Where::current()) const {
    T* at = touch(i, simt::AccessKind::kAtomic, where);
    return std::exchange(*at, std::max(*at, value));
  }

 private:
  T* touch(size_t i, simt::AccessKind kind, const Where& where) const {
    if (i >= n_)
      Block::current().fail(fmt::format("touches element {} of shared memory, which has {}", i, n_), where);
    Block::current().touch_shared(std::as_bytes(std::span(data_, n_)), {data_ + i, sizeof(T), kind}, where);
    return data_ + i;
  }
  T* data_;
  size_t n_;
};

template <class T, size_t N>
class Shared {
 public:
  T load(size_t i, const Where& where = Where::current()) { return span().load(i, where); }
  void store(size_t i, T value, const Where& where = Where::current()) { span().store(i, value, where); }
  T atomic_add(size_t i, T value, const Where& where = Where::current()) {
    return span().atomic_add(i, value, where);
  }
  T atomic_max(size_t i, T value, const Where& where = Where::current()) {
    return span().atomic_max(i, value, where);
  }

 private:
  SharedSpan<T> span() { return {data_, N}; }
  T data_[N];
};

/// The launch's dynamic shared memory.
template <class T>
SharedSpan<T> dynamic_shared() {
  const auto bytes = Block::current().dynamic_shared();
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace tern::cuda
