// Codecs: how a run of fp32, bf16 or fp16 elements becomes fewer bytes on the wire, and back. One registry
// row per codec.
//
// A message is a 32-byte header (wire_header.h) and one or more planes, each padded with zeros to 16 bytes.
// Encoding the same elements gives the same bytes on every processor. All arithmetic is fp32, whatever the
// elements: bf16 and fp16 are widened on the way in and rounded once on the way out; residuals are fp32. The
// formats are described where the kernels are: kernels/q8.h, kernels/topk.h, ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "kernels/block_codec.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status.h"
#include "runtime/codec/codec_spec.h"
#include "runtime/codec/wire_header.h"

namespace tern {

/// Error feedback: whether what an encoding lost is kept and added to the next input.
enum class ResidualUse : uint8_t { kNone, kOptional, kMandatory };

/// Reads "q8" or "topk:k=64" (NAME[:key=value,...]); the error names the part that is wrong and lists the
/// codecs, the codec's options or the option's allowed values.
Result<CodecSpec> parse_codec(std::string_view text);
/// The same grammar; numbers are always said, words only when they are not the default:
/// parse_codec(to_string(spec)) is spec.
std::string to_string(const CodecSpec& spec);

/// Whether codecs encode elements of this type.
constexpr bool is_encodable(Dtype dtype) {
  return dtype == Dtype::kFloat32 || dtype == Dtype::kBfloat16 || dtype == Dtype::kFloat16;
}
/// "fp32, fp16, bf16": the types for which is_encodable(), for errors.
std::string encodable_dtypes();

struct EncodeArgs {
  ConstView in = {};  ///< is_encodable(), at most 2^32 - 1 elements
  /// in.n floats, not overlapping `in`, read and rewritten: encoded is in + residual, and what the encoding
  /// lost of it becomes the residual. A block with a non-finite element leaves its residual as it was.
  /// Null: none.
  float* residual = nullptr;
  std::byte* wire = nullptr;  ///< wire_bytes(spec, in.dtype, in.n) bytes, all written; any alignment
  CodecSpec spec = {};
  WireTag tag = {};
  bool checksum = false;  ///< CRC32C over the payload too, for transports that do not guarantee integrity
};

struct EncodeStats {
  bool non_finite = false;   ///< an element was inf or NaN, or became so; the header says it too
  uint32_t n_saturated = 0;  ///< elements that were clamped
};

/// Runs of a message start at multiples of this many elements: no block of any codec is cut.
inline constexpr size_t kRunGrain = 4096;

/// A run of a message's elements to decode to fp32.
struct DecodeRun {
  CodecSpec spec;
  const std::byte* wire = nullptr;  ///< the message, whose header is as the receiver expects
  size_t n = 0;                     ///< elements of the whole message
  size_t begin = 0;                 ///< of the run: a multiple of kRunGrain
  std::span<float> out = {};        ///< the run ends at the message's end or at a multiple of kRunGrain
  Decode how = Decode::kSet;        ///< kAdd: elements that topk did not send are not touched
};

/// An option of a codec: "k", the member that holds it, and the values it may have.
struct CodecOption {
  std::string_view name;
  int CodecSpec::*member;
  std::span<const int> allowed;
  std::span<const std::string_view> words = {};  ///< what the values are called; empty: their digits
};
/// How the grammar writes allowed[idx].
std::string value_text(const CodecOption& option, size_t idx);

/// Seconds per byte of fp32 elements, on one core.
struct CodecSpeed {
  double encode_beta = 0;
  double decode_beta = 0;  ///< decoded and added to what is there
};

/// How much more loss a training run is expected to end with than a dense one, percent of that.
struct LossGap {
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  double plain = 0;          ///< without a residual
  double with_residual = 0;  ///< where the codec takes one
};

struct CodecInfo {
  CodecId id;
  std::string_view name;
  ResidualUse residual;
  size_t block;  ///< elements that share a scale; boundaries of segments must be multiples of it
  std::span<const CodecOption> options;
  /// Bits on the wire per element of `elt` bytes of a long message, scales included and the header not.
  double (*bits_per_element)(const CodecSpec&, size_t elt);
  /// Most that |decoded - encoded| can be for an element of a block whose largest magnitude is `absmax`
  /// (finite, normal).
  double (*max_error)(const CodecSpec&, double absmax);
  /// Bytes of the whole message for n elements, header and padding included.
  size_t (*wire_bytes)(const CodecSpec&, Dtype, size_t n);
  EncodeStats (*encode)(const EncodeArgs&);
  /// Damaged payloads decode to wrong numbers, never outside `out`.
  void (*decode_run)(const DecodeRun&);
  /// Codecs that lose nothing give back the very elements, NaN payloads included, of a message that was
  /// encoded from out.dtype. Null: decode_run() rounded to out.dtype.
  void (*decode_exactly)(const CodecSpec&, const std::byte* wire, View out) = nullptr;
  LossGap loss_gap;
  CodecSpeed speed;  ///< as bench/codec_perf measured on a 2-core Xeon (AVX-512); plans are priced with it
};

/// All codecs, in the order of CodecId.
std::span<const CodecInfo> codecs();
const CodecInfo& info(CodecId id);

/// Whether the codec may be used with or without a residual. Errors: kInvalidArgument (a biased codec
/// without; stochastic rounding with one below 16 levels: what it adds to the residual grows faster than it
/// is sent).
Status check_residual(const CodecSpec& spec, bool has_residual);

/// The options as one number, 0 for codecs without: what headers carry.
uint16_t option_number(const CodecSpec& spec);
/// Its inverse; numbers that are none of the codec's give some of its options.
CodecSpec spec_of(CodecId id, uint16_t option_number);

}  // namespace tern
