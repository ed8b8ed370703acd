// Whether a call is encoded: what it says itself, TERN_CODEC, and what the planner finds.
#include "runtime/base/log.h"
#include "runtime/communicator/runner.h"

namespace tern {
namespace {

// Collectives that only move elements encode them when a call says so; nothing of what that loses is kept.
Status check_copies(const Operation& o, const CodecInfo& codec) {
  const bool can_encode = o.collective == Collective::kAllGather || o.collective == Collective::kBroadcast ||
                          o.collective == Collective::kAllToAll;
  if (!can_encode || o.is_uneven()) {
    return error(Code::kUnsupported,
                 "{}{} with codec {}: codecs apply to all_reduce, reduce_scatter, all_gather, broadcast and "
                 "all_to_all of equal counts",
                 o.is_uneven() ? "uneven " : "", name(o.collective), codec.name);
  }
  if (!is_encodable(o.out.dtype))
    return error(Code::kUnsupported, "codec {} encodes {}, not {}", codec.name, encodable_dtypes(),
                 name(o.out.dtype));
  if (codec.residual == ResidualUse::kMandatory || o.options.residual != nullptr)
    return error(Code::kInvalidArgument, "{} with codec {}: {}", name(o.collective), codec.name,
                 o.options.residual != nullptr
                     ? "it takes no residual, since the next call moves other elements"
                     : "a biased codec needs a residual, which only sums can have");
  return {};
}

bool is_encodable_sum(const Operation& o) {
  return is_encodable(o.out.dtype) && (o.op == Op::kSum || o.op == Op::kAvg);
}

}  // namespace

// Errors of a codec that the call itself names: it must get it.
Status Runner::check_codec(const Operation& o, size_t count) const {
  if (!o.options.codec.has_value() || o.options.codec->is_automatic || o.options.codec->is_dense()) return {};
  const CodecSpec& spec = o.options.codec->spec;
  const CodecInfo& codec = info(spec.id);
  if (!encodes_by_default(o.collective)) return check_copies(o, codec);
  if (!is_encodable_sum(o)) {
    return error(Code::kUnsupported, "codec {} encodes sums and averages of {}, not {} of {}", codec.name,
                 encodable_dtypes(), name(o.op), name(o.out.dtype));
  }
  if (const Status fit = check_residual(spec, o.options.residual != nullptr); count > 0 && !fit.ok()) {
    return error(fit.error().code, "{} (CallOptions::residual, {} floats)", fit.error().message, count);
  }
  return {};
}

// TERN_CODEC applies where it can, as does auto.
Result<CodecVerdict> Runner::verdict_for(const Operation& o, size_t count) {
  const bool is_own = o.options.codec.has_value();
  const CodecChoice& choice = is_own ? *o.options.codec : default_codec_;
  if (choice.is_dense()) return CodecVerdict{};
  if (is_own && !choice.is_automatic) return CodecVerdict{choice.spec, CodecReason::kNamed};
  if (!encodes_by_default(o.collective)) return CodecVerdict{};
  if (!is_encodable_sum(o)) return CodecVerdict{.reason = CodecReason::kNotEncodable};
  const bool has_residual = o.options.residual != nullptr;
  if (choice.is_automatic)
    return planner_.weigh_codecs(shape_of(o, count, {}),
                                 {choice.max_loss_gap, has_residual, o.options.hidden_seconds});
  if (!check_residual(choice.spec, has_residual).ok())
    return CodecVerdict{.reason = CodecReason::kNoResidual};
  return CodecVerdict{choice.spec, CodecReason::kNamed};
}

void Runner::tally(const CodecVerdict& verdict, const Operation& o) {
  uint64_t& n = codec_counts_[static_cast<size_t>(verdict.reason)];
  const bool is_fallback =
      verdict.reason == CodecReason::kNotEncodable || verdict.reason == CodecReason::kNoResidual;
  if (n++ == 0 && is_fallback)
    log_info("codec", "{} of {} runs dense though codec {} was asked for: {}; later ones are only counted",
             name(o.collective), name(o.out.dtype), to_string(o.options.codec.value_or(default_codec_)),
             name(verdict.reason));
}

}  // namespace tern
