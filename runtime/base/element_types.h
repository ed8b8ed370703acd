// Element types and reduction operators, with the names that nccl-tests and the trainer print. Apart from
// dtype.h so that CUDA sources can have them: nvcc does not compile fmt.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tern {

/// Storage types only: 8- and 16-bit floats are computed on in fp32 (conversions: kernels/convert.h).
struct Float16 {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};
/// OCP 8-bit floating point (Micikevicius et al., arXiv 2209.05433): E4M3 has no infinity, its largest number
/// is 448 and 0x7F is NaN; E5M2 follows IEEE 754, its largest number is 57344.
struct Float8E4m3 {
  uint8_t bits;
};
struct Float8E5m2 {
  uint8_t bits;
};

// The table: ROW(enumerator, C++ type, our name, nccl-tests' name, is a float).
#define TERN_DTYPES(ROW)                                  \
  ROW(kFloat32, float, "fp32", "float", true)             \
  ROW(kFloat64, double, "fp64", "double", true)           \
  ROW(kFloat16, Float16, "fp16", "half", true)            \
  ROW(kBfloat16, Bfloat16, "bf16", "bfloat16", true)      \
  ROW(kInt32, int32_t, "int32", "int32", false)           \
  ROW(kInt64, int64_t, "int64", "int64", false)           \
  ROW(kUint8, uint8_t, "uint8", "uint8", false)           \
  ROW(kInt8, int8_t, "int8", "int8", false)               \
  ROW(kUint32, uint32_t, "uint32", "uint32", false)       \
  ROW(kUint64, uint64_t, "uint64", "uint64", false)       \
  ROW(kFloat8E4m3, Float8E4m3, "fp8e4m3", "f8e4m3", true) \
  ROW(kFloat8E5m2, Float8E5m2, "fp8e5m2", "f8e5m2", true)

#define TERN_ENUMERATOR(enumerator, type, name, nccl_name, is_float) enumerator,
enum class Dtype : uint8_t { TERN_DTYPES(TERN_ENUMERATOR) };
#undef TERN_ENUMERATOR

struct DtypeInfo {
  Dtype dtype;
  std::string_view name;       ///< ours: "fp32"
  std::string_view nccl_name;  ///< nccl-tests': "float"
  size_t size;                 ///< bytes
  bool is_float;
  bool is_signed;
};

#define TERN_ROW(enumerator, type, name, nccl_name, is_float) \
  DtypeInfo{Dtype::enumerator, name, nccl_name, sizeof(type), is_float, !std::is_unsigned_v<type>},
inline constexpr auto kDtypes = std::to_array<DtypeInfo>({TERN_DTYPES(TERN_ROW)});
#undef TERN_ROW

constexpr const DtypeInfo& info(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)];
}
constexpr size_t size_of(Dtype dtype) {
  return info(dtype).size;
}
constexpr std::string_view name(Dtype dtype) {
  return info(dtype).name;
}

/// kPremulSum adds each rank's input times that rank's factor (CallOptions::factor).
enum class Op : uint8_t { kSum, kProd, kMin, kMax, kAvg, kPremulSum };
inline constexpr std::array<std::string_view, 6> kOpNames = {"sum", "prod", "min", "max", "avg", "mulsum"};
constexpr std::string_view name(Op op) {
  return kOpNames[static_cast<size_t>(op)];
}

/// The dtype of a C++ element type.
template <class T>
constexpr Dtype dtype_of() {
#define TERN_MATCH(enumerator, type, name, nccl_name, is_float) \
  if constexpr (std::is_same_v<std::remove_cv_t<T>, type>) return Dtype::enumerator;
  TERN_DTYPES(TERN_MATCH)
#undef TERN_MATCH
}

/// f(std::type_identity<T>()) for the element type T of a dtype: how code that is written once for all types
/// is reached from a dtype that is known at run time only.
template <class F>
decltype(auto) with_type(Dtype dtype, F&& f) {
  switch (dtype) {
#define TERN_CASE(enumerator, type, name, nccl_name, is_float) \
  case Dtype::enumerator:                                      \
    return f(std::type_identity<type>());
    TERN_DTYPES(TERN_CASE)
#undef TERN_CASE
  }
  __builtin_unreachable();
}

}  // namespace tern
