// Encoding and decoding whole messages in tests, over every row of the registry and every option value.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/codec/codec.h"
#include "tests/kernels/gradients.h"

namespace tern::test {

/// Every codec with every value of its options.
inline std::vector<CodecSpec> all_specs() {
  std::vector<CodecSpec> specs;
  for (const CodecInfo& row : codecs()) {
    if (row.options.empty()) specs.push_back({.id = row.id});
    for (const CodecOption& option : row.options) {
      for (const int value : option.allowed) {
        CodecSpec spec{.id = row.id};
        spec.*option.member = value;
        specs.push_back(spec);
      }
    }
  }
  return specs;
}

inline bool takes_residual(const CodecSpec& spec) {
  return info(spec.id).residual != ResidualUse::kNone;
}

struct Message {
  CodecSpec spec;
  WireTag tag;
  size_t n = 0;
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
};

inline Message encode(const CodecSpec& spec, std::span<const float> in, const EncodeOptions& options = {}) {
  Message message{
      .spec = spec, .tag = options.tag, .n = in.size(), .bytes = {}, .stats = {}, .odd = options.odd};
  message.bytes.assign(info(spec.id).wire_bytes(spec, in.size()) + (options.odd ? 1 : 0), std::byte{0xEE});
  message.stats =
      info(spec.id).encode({.in = in,
                            .residual = options.residual != nullptr ? options.residual->data() : nullptr,
                            .wire = message.bytes.data() + (options.odd ? 1 : 0),
                            .spec = spec,
                            .tag = options.tag,
                            .checksum = options.checksum});
  return message;
}

inline std::vector<float> decode(const Message& message) {
  std::vector<float> out(message.n, -77.0F);
  info(message.spec.id).decode(message.spec, message.wire(), out);
  return out;
}

inline double sum_of_squares(std::span<const float> v) {
  double sum = 0;
  for (const float x : v) sum += static_cast<double>(x) * x;
  return sum;
}

}  // namespace tern::test
