// Encoding and decoding whole messages in tests, over every row of the registry and every option value.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/arithmetic.h"
#include "runtime/codec/decode.h"
#include "runtime/codec/runs.h"
#include "tests/kernels/gradients.h"

namespace tern::test {

/// Every codec with every value of its options.
inline std::vector<CodecSpec> all_specs() {
  std::vector<CodecSpec> specs;
  for (const CodecInfo& row : codecs()) {
    size_t n_specs = 1;
    for (const CodecOption& option : row.options) n_specs *= option.allowed.size();
    for (size_t number = 0; number < n_specs; ++number)
      specs.push_back(spec_of(row.id, static_cast<uint16_t>(number)));
  }
  return specs;
}

inline constexpr Dtype kEncodable[] = {Dtype::kFloat32, Dtype::kBfloat16, Dtype::kFloat16};

/// The values as elements of the type, which holds them rounded.
inline std::vector<std::byte> elements_of(std::span<const float> values, Dtype dtype) {
  std::vector<std::byte> elements(values.size() * size_of(dtype));
  narrow_run(values, {elements.data(), values.size(), dtype});
  return elements;
}
inline std::vector<float> values_of(const std::vector<std::byte>& elements, Dtype dtype) {
  std::vector<float> values(elements.size() / size_of(dtype));
  widen_run({elements.data(), values.size(), dtype}, values);
  return values;
}
/// What is left of the values in an element type.
inline std::vector<float> rounded(std::span<const float> values, Dtype dtype) {
  return values_of(elements_of(values, dtype), dtype);
}

inline bool takes_residual(const CodecSpec& spec) {
  return info(spec.id).residual != ResidualUse::kNone;
}

inline bool is_stochastic(const CodecSpec& spec) {
  return spec.rounding != 0;
}
/// Whether v - decoded is exact in fp32: then they are within a factor of two, or one is zero.
inline bool loses_exactly(const CodecSpec& spec) {
  return !is_stochastic(spec) && spec.id != CodecId::kQ4h && spec.id != CodecId::kSign1;
}

struct Message {
  CodecSpec spec;
  WireTag tag;
  size_t n = 0;
  Dtype dtype = Dtype::kFloat32;
  std::vector<std::byte> bytes;
  EncodeStats stats;

  /// The message, one byte past any alignment when `odd`.
  const std::byte* wire() const { return bytes.data() + (odd ? 1 : 0); }
  size_t n_wire_bytes() const { return bytes.size() - (odd ? 1 : 0); }
  bool odd = false;
};

struct EncodeOptions {
  std::vector<float>* residual = nullptr;
  WireTag tag = {.step = 7, .bucket = 3, .element_offset = 1 << 20};
  bool checksum = false;
  bool odd = false;
  Dtype dtype = Dtype::kFloat32;
};

inline Message encode(const CodecSpec& spec, std::span<const float> in, const EncodeOptions& options = {}) {
  Message message{.spec = spec,
                  .tag = options.tag,
                  .n = in.size(),
                  .dtype = options.dtype,
                  .bytes = {},
                  .stats = {},
                  .odd = options.odd};
  const size_t n_bytes = info(spec.id).wire_bytes(spec, options.dtype, in.size());
  message.bytes.assign(n_bytes + (options.odd ? 1 : 0), std::byte{0xEE});
  const auto elements = elements_of(in, options.dtype);
  message.stats =
      info(spec.id).encode({.in = {elements.data(), in.size(), options.dtype},
                            .residual = options.residual != nullptr ? options.residual->data() : nullptr,
                            .wire = message.bytes.data() + (options.odd ? 1 : 0),
                            .spec = spec,
                            .tag = options.tag,
                            .checksum = options.checksum});
  return message;
}

inline std::vector<float> decode(const Message& message) {
  auto elements = elements_of(std::vector<float>(message.n, -77.0F), message.dtype);
  tern::decode(message.spec, message.wire(), {elements.data(), message.n, message.dtype});
  return values_of(elements, message.dtype);
}

/// out[i] += the decoded elements, or out[i] = them.
inline void decode_run(const Message& message, std::span<float> out, Decode how) {
  info(message.spec.id)
      .decode_run({.spec = message.spec, .wire = message.wire(), .n = message.n, .out = out, .how = how});
}

inline double sum_of_squares(std::span<const float> v) {
  double sum = 0;
  for (const float x : v) sum += static_cast<double>(x) * x;
  return sum;
}

}  // namespace tern::test
