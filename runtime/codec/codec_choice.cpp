#include "runtime/codec/codec_choice.h"

#include <charconv>

namespace tern {
namespace {

constexpr std::string_view kAuto = "auto";
constexpr std::string_view kGapKey = "max_loss_gap=";

Result<double> parse_gap(std::string_view text) {
  double percent = -1;
  const std::string_view number = text.starts_with(kGapKey) ? text.substr(kGapKey.size()) : text;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), percent);
  const bool is_number = read.ec == std::errc() && read.ptr == number.data() + number.size();
  if (text.starts_with(kGapKey) && is_number && percent >= 0 && percent <= 100) return percent;
  return error(Code::kInvalidArgument,
               "codec auto cannot read \"{}\"; allowed: max_loss_gap=PERCENT, 0..100, such as "
               "auto:max_loss_gap=0.3",
               text);
}

}  // namespace

CodecChoice CodecChoice::automatic(double max_loss_gap) {
  CodecChoice choice;
  choice.is_automatic = true;
  choice.max_loss_gap = max_loss_gap;
  return choice;
}

Result<CodecChoice> parse_codec_choice(std::string_view text) {
  const size_t colon = text.find(':');
  if (text.substr(0, colon) == kAuto) {
    if (colon == std::string_view::npos) return CodecChoice::automatic();
    TERN_ASSIGN(const double gap, parse_gap(text.substr(colon + 1)));
    return CodecChoice::automatic(gap);
  }
  Result<CodecSpec> spec = parse_codec(text);
  if (spec.ok()) return CodecChoice(*spec);
  if (text.find(':') != std::string_view::npos) return spec.error();
  return error(spec.error().code, "{}, or auto", spec.error().message);
}

std::string to_string(const CodecChoice& choice) {
  if (!choice.is_automatic) return to_string(choice.spec);
  if (choice.max_loss_gap == 0) return std::string(kAuto);
  return fmt::format("{}:{}{}", kAuto, kGapKey, choice.max_loss_gap);
}

double loss_gap(const CodecInfo& codec, bool has_residual) {
  const bool feeds_back = has_residual && codec.residual != ResidualUse::kNone;
  return feeds_back ? codec.loss_gap.with_residual : codec.loss_gap.plain;
}

std::vector<CodecSpec> allowed_codecs(double max_loss_gap, bool has_residual, size_t elt) {
  std::vector<CodecSpec> allowed;
  for (const CodecInfo& row : codecs()) {
    const CodecSpec spec{.id = row.id};
    const bool saves = row.bits_per_element(spec, elt) < 8.0 * static_cast<double>(elt);
    if (saves && loss_gap(row, has_residual) <= max_loss_gap) allowed.push_back(spec);
  }
  return allowed;
}

}  // namespace tern
