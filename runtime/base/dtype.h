// Element types and reduction operators, with the names that nccl-tests and the trainer print.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "runtime/base/status.h"

namespace tern {

/// Storage types only: 16-bit floats are computed on in fp32 (conversions: kernels/convert.h).
struct Float16 {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

enum class Dtype : uint8_t { kFloat32, kFloat64, kFloat16, kBfloat16, kInt32, kInt64, kUint8 };

struct DtypeInfo {
  Dtype dtype;
  std::string_view name;       ///< ours: "fp32"
  std::string_view nccl_name;  ///< nccl-tests': "float"
  size_t size;                 ///< bytes
  bool is_float;
};

inline constexpr std::array<DtypeInfo, 7> kDtypes = {{
    {Dtype::kFloat32, "fp32", "float", 4, true},
    {Dtype::kFloat64, "fp64", "double", 8, true},
    {Dtype::kFloat16, "fp16", "half", 2, true},
    {Dtype::kBfloat16, "bf16", "bfloat16", 2, true},
    {Dtype::kInt32, "int32", "int32", 4, false},
    {Dtype::kInt64, "int64", "int64", 8, false},
    {Dtype::kUint8, "uint8", "uint8", 1, false},
}};

constexpr const DtypeInfo& info(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)];
}
constexpr size_t size_of(Dtype dtype) {
  return info(dtype).size;
}
constexpr std::string_view name(Dtype dtype) {
  return info(dtype).name;
}
/// Finds a dtype by either of its names; the error lists what is allowed.
Result<Dtype> parse_dtype(std::string_view text);

enum class Op : uint8_t { kSum, kProd, kMin, kMax, kAvg };
inline constexpr std::array<std::string_view, 5> kOpNames = {"sum", "prod", "min", "max", "avg"};
constexpr std::string_view name(Op op) {
  return kOpNames[static_cast<size_t>(op)];
}
Result<Op> parse_op(std::string_view text);

template <class T>
constexpr Dtype dtype_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>)
    return Dtype::kFloat32;
  else if constexpr (std::is_same_v<U, double>)
    return Dtype::kFloat64;
  else if constexpr (std::is_same_v<U, Float16>)
    return Dtype::kFloat16;
  else if constexpr (std::is_same_v<U, Bfloat16>)
    return Dtype::kBfloat16;
  else if constexpr (std::is_same_v<U, int32_t>)
    return Dtype::kInt32;
  else if constexpr (std::is_same_v<U, int64_t>)
    return Dtype::kInt64;
  else {
    static_assert(std::is_same_v<U, uint8_t>, "not an element type of Tern");
    return Dtype::kUint8;
  }
}

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
