// Which codec, with which options: what a call, a message and a plan name.
#pragma once

#include <cstdint>

namespace tern {

enum class CodecId : uint8_t { kNone, kBf16, kQ8, kTopk, kFp16, kFp8, kMxfp8, kQ6, kQ5, kQ4h, kSign1 };

/// A codec and its options; value type, printable.
struct CodecSpec {
  CodecId id = CodecId::kNone;
  int k = 32;        ///< topk: elements kept of every 4096
  int rounding = 0;  ///< q8, q6, q5, q4h: 0 to the nearest, 1 stochastically
  int format = 0;    ///< fp8: 0 E4M3, 1 E5M2

  bool operator==(const CodecSpec&) const = default;
};

}  // namespace tern
