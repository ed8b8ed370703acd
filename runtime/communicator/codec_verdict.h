// Whether a call is encoded, with what, and why.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/codec/codec.h"
#include "runtime/plan/plan.h"

namespace tern {

/// Why a call ran dense or encoded.
enum class CodecReason : uint8_t {
  kDense,         ///< nothing else was asked for
  kNamed,         ///< encoded: the call, or TERN_CODEC, names the codec
  kPays,          ///< encoded: auto predicts that it is faster
  kDoesNotPay,    ///< dense: auto predicts that no allowed codec is faster by more than a tenth
  kHidden,        ///< dense: auto predicts that the caller does not wait for it
  kSmall,         ///< dense: auto leaves vectors below kLeastEncodedBytes alone
  kNoneAllowed,   ///< dense: max_loss_gap and the residual leave auto no codec, or none that can run the call
  kNotEncodable,  ///< dense: TERN_CODEC or auto do not apply to this element type or operator
  kNoResidual,    ///< dense: TERN_CODEC needs a residual and the call has none
};
inline constexpr std::array<std::string_view, 9> kCodecReasons = {
    "dense",
    "named",
    "pays",
    "does not pay",
    "hidden behind other work",
    "too small",
    "no codec is allowed",
    "not a sum or average of encodable elements",
    "no residual"};
constexpr std::string_view name(CodecReason reason) {
  return kCodecReasons[static_cast<size_t>(reason)];
}
/// How many calls there were of each reason, by CodecReason.
using CodecCounts = std::array<uint64_t, kCodecReasons.size()>;

/// Collectives of sums, which TERN_CODEC and auto apply to.
constexpr bool encodes_by_default(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter;
}

/// Below this size, bytes of the whole vector, auto does not encode.
inline constexpr size_t kLeastEncodedBytes = 64 << 10;
/// An encoded call must be predicted to take less than this share of the dense one's exposed time.
inline constexpr double kWorthEncoding = 0.9;

/// What auto weighs a call by; the same on all ranks.
struct CodecQuestion {
  double max_loss_gap = 0;  ///< see CodecChoice
  bool has_residual = false;
  double hidden_seconds = 0;  ///< of the call that other work of the caller hides
  bool operator==(const CodecQuestion&) const = default;
};

struct CodecVerdict {
  CodecSpec codec;
  CodecReason reason = CodecReason::kDense;
  double dense_seconds = 0;    ///< predicted; 0: nothing was weighed
  double encoded_seconds = 0;  ///< of the fastest allowed codec; 0: there is none
};

/// Whether an encoded call is worth what it loses, of predicted times in seconds.
CodecVerdict weigh(const CodecSpec& codec, double encoded_seconds, double dense_seconds,
                   double hidden_seconds);

}  // namespace tern
