// Codecs: how a run of fp32 elements becomes fewer bytes on the wire, and back. One registry row per codec.
//
// A message is a 32-byte header (wire_header.h) and one or more planes, each padded with zeros to 16 bytes.
// Encoding the same elements gives the same bytes on every processor. The formats are described where the
// kernels are: kernels/q8.h, kernels/topk.h; `bf16` and `none` are one plane of the elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/codec/wire_header.h"

namespace tern {

enum class CodecId : uint8_t { kNone, kBf16, kQ8, kTopk };

/// Error feedback: whether what an encoding lost is kept and added to the next input.
enum class ResidualUse : uint8_t { kNone, kOptional, kMandatory };

/// A codec and its options; value type, printable.
struct CodecSpec {
  CodecId id = CodecId::kNone;
  int k = 32;  ///< topk: elements kept of every 4096

  bool operator==(const CodecSpec&) const = default;
};

/// Reads "q8" or "topk:k=64" (NAME[:key=value,...]); the error names the part that is wrong and lists the
/// codecs, the codec's options or the option's allowed values.
Result<CodecSpec> parse_codec(std::string_view text);
/// The same grammar, options included: parse_codec(to_string(spec)) is spec.
std::string to_string(const CodecSpec& spec);

struct EncodeArgs {
  std::span<const float> in = {};  ///< at most 2^32 - 1 elements
  /// in.size() floats, not overlapping `in`, read and rewritten: encoded is in + residual, and what the
  /// encoding lost of it becomes the residual. A block with a non-finite element leaves its residual as it
  /// was. Null: none.
  float* residual = nullptr;
  std::byte* wire = nullptr;  ///< wire_bytes(spec, in.size()) bytes, all of them written; any alignment
  CodecSpec spec = {};
  WireTag tag = {};
  bool checksum = false;  ///< CRC32C over the payload too, for transports that do not guarantee integrity
};

struct EncodeStats {
  bool non_finite = false;   ///< an element was inf or NaN, or became so; the header says it too
  uint32_t n_saturated = 0;  ///< elements that were clamped (none of today's codecs clamps)
};

/// An integer option of a codec: "k", the member that holds it, and the values it may have.
struct CodecOption {
  std::string_view name;
  int CodecSpec::*member;
  std::span<const int> allowed;
};

struct CodecInfo {
  CodecId id;
  std::string_view name;
  ResidualUse residual;
  size_t block;  ///< elements that share a scale; boundaries of segments must be multiples of it
  std::span<const CodecOption> options;
  /// Bits on the wire per element of a long message, scales included and the header not.
  double (*bits_per_element)(const CodecSpec&);
  /// Most that |decoded - encoded| can be for an element of a block whose largest magnitude is `absmax`
  /// (finite, normal).
  double (*max_error)(const CodecSpec&, double absmax);
  /// Bytes of the whole message for n elements, header and padding included.
  size_t (*wire_bytes)(const CodecSpec&, size_t n);
  EncodeStats (*encode)(const EncodeArgs&);
  /// out = the decoded elements; the message must have passed check_header() for out.size() elements. Damaged
  /// payloads decode to wrong numbers, never outside `out`.
  void (*decode)(const CodecSpec&, const std::byte* wire, std::span<float> out);
  /// out += the decoded elements, in fp32; elements that topk did not send are not touched.
  void (*decode_accumulate)(const CodecSpec&, const std::byte* wire, std::span<float> out);
};

/// All codecs, in the order of CodecId.
std::span<const CodecInfo> codecs();
const CodecInfo& info(CodecId id);

}  // namespace tern
