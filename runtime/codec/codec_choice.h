// What a caller says of codecs: one of them, or "auto": whichever pays, within what the loss may suffer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/codec/codec.h"

namespace tern {

/// A codec, or the wish that the planner takes one where that pays; value type. Converts from CodecSpec.
struct CodecChoice {
  CodecSpec spec;  ///< where is_automatic: not looked at
  bool is_automatic = false;
  double max_loss_gap = 0;  ///< percent; automatic: codecs whose CodecInfo::loss_gap is larger are left out

  CodecChoice() = default;
  CodecChoice(const CodecSpec& codec) : spec(codec) {}  // NOLINT(google-explicit-constructor)
  static CodecChoice automatic(double max_loss_gap = 0);

  bool is_dense() const { return !is_automatic && spec.id == CodecId::kNone; }
  bool operator==(const CodecChoice&) const = default;
};

/// Reads a codec's text, or "auto[:max_loss_gap=PERCENT]": "auto:max_loss_gap=0.3". Without a number the gap
/// is 0: none, bf16, fp16, q8.
/// Errors: kInvalidArgument as of parse_codec(); a gap outside 0..100.
Result<CodecChoice> parse_codec_choice(std::string_view text);
/// In the same grammar: parse_codec_choice(to_string(choice)) is choice.
std::string to_string(const CodecChoice& choice);

/// The codec's loss gap in a call with or without a residual, percent.
double loss_gap(const CodecInfo& codec, bool has_residual);

/// Which codecs "auto" may take for elements of `elt` bytes: not `none`, none that saves no bytes, and none
/// whose loss gap exceeds max_loss_gap with or without a residual, as the call has one. With their default
/// options.
std::vector<CodecSpec> allowed_codecs(double max_loss_gap, bool has_residual, size_t elt);

}  // namespace tern
