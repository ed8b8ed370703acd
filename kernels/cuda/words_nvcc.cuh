// What kernels/simt/words.h checks, without the checks: these compile to the loads and stores alone.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/simt/shape.h"

#define TERN_DEVICE __device__ __forceinline__
#define TERN_SHARED __shared__
#define TERN_UNROLL _Pragma("unroll")  // registers have no index, so loops over arrays of them go

namespace tern::cuda {

template <class T, int N>
struct alignas(sizeof(T) * N) Vec {
  T at[N];
};

/// The type whose load or store is one instruction of so many bytes.
template <size_t n_bytes>
struct Word;
template <>
struct Word<16> {
  using type = uint4;
};
template <>
struct Word<8> {
  using type = uint2;
};
template <>
struct Word<4> {
  using type = uint32_t;
};

template <class T>
class Global {
  using Value = std::remove_const_t<T>;

 public:
  TERN_DEVICE explicit Global(T* data) : data_(data) {}
  TERN_DEVICE bool aligned(size_t i) const { return reinterpret_cast<uintptr_t>(data_ + i) % 16 == 0; }
  TERN_DEVICE Value load(size_t i) const { return data_[i]; }
  TERN_DEVICE void store(size_t i, Value value) const { data_[i] = value; }
  template <int N>
  TERN_DEVICE Vec<Value, N> load_vector(size_t i) const {
    using W = typename Word<sizeof(T) * N>::type;
    const W word = *reinterpret_cast<const W*>(data_ + i);
    Vec<Value, N> value;
    memcpy(&value, &word, sizeof(value));
    return value;
  }
  template <int N>
  TERN_DEVICE void store_vector(size_t i, const Vec<Value, N>& value) const {
    using W = typename Word<sizeof(T) * N>::type;
    W word;
    memcpy(&word, &value, sizeof(value));
    __stwb(reinterpret_cast<W*>(data_ + i), word);  // a plain store nvcc may split into its elements
  }
  TERN_DEVICE Value atomic_add(size_t i, Value value) const { return atomicAdd(data_ + i, value); }

 private:
  T* data_;
};

template <class T>
class SharedSpan {
 public:
  TERN_DEVICE explicit SharedSpan(T* data) : data_(data) {}
  TERN_DEVICE T load(size_t i) const { return data_[i]; }
  TERN_DEVICE void store(size_t i, T value) const { data_[i] = value; }
  TERN_DEVICE T atomic_add(size_t i, T value) const { return atomicAdd(data_ + i, value); }
  TERN_DEVICE T atomic_max(size_t i, T value) const { return atomicMax(data_ + i, value); }

 private:
  T* data_;
};

template <class T, size_t N>
class Shared {
 public:
  TERN_DEVICE T load(size_t i) { return data_[i]; }
  TERN_DEVICE void store(size_t i, T value) { data_[i] = value; }
  TERN_DEVICE T atomic_add(size_t i, T value) { return atomicAdd(data_ + i, value); }
  TERN_DEVICE T atomic_max(size_t i, T value) { return atomicMax(data_ + i, value); }

 private:
  T data_[N];
};

template <class T>
TERN_DEVICE SharedSpan<T> dynamic_shared() {
  extern __shared__ uint4 words[];
  return SharedSpan<T>(reinterpret_cast<T*>(words));
}

}  // namespace tern::cuda
