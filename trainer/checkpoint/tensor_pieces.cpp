#include "trainer/checkpoint/tensor_pieces.h"

#include <algorithm>
#include <charconv>

namespace tern::trainer {
namespace {

constexpr std::string_view kFirstSuffix = ".exp_avg";
constexpr std::string_view kSecondSuffix = ".exp_avg_sq";

std::optional<int64_t> parse_number(std::string_view text) {
  int64_t value = 0;
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::vector<TensorPiece> pieces_of(const ParameterLayout& layout, std::span<const OwnedRange> ranges) {
  std::vector<TensorPiece> pieces;
  for (int param_idx = 0; param_idx < layout.size(); ++param_idx) {
    const Parameter& parameter = layout[param_idx];
    for (const OwnedRange& range : ranges) {
      const int64_t begin = std::max(range.begin, parameter.offset);
      const int64_t end = std::min(range.end, parameter.offset + parameter.size());
      if (begin >= end) continue;
      const TensorPiece piece{param_idx, begin - parameter.offset, end - parameter.offset,
                              range.state_begin + (begin - range.begin)};
      const bool joins = !pieces.empty() && pieces.back().param_idx == param_idx &&
                         pieces.back().end == piece.begin &&
                         pieces.back().state_begin + pieces.back().size() == piece.state_begin;
      if (joins) {
        pieces.back().end = piece.end;
      } else {
        pieces.push_back(piece);
      }
    }
  }
  return pieces;
}

std::string piece_name(const ParameterLayout& layout, const TensorPiece& piece, Moment moment) {
  return fmt::format("{}{}[{}:{}]", layout[piece.param_idx].name,
                     moment == Moment::kFirst ? kFirstSuffix : kSecondSuffix, piece.begin, piece.end);
}

std::optional<NamedPiece> parse_piece_name(const ParameterLayout& layout, std::string_view name) {
  const size_t open = name.rfind('[');
  const size_t colon = name.rfind(':');
  if (open == std::string_view::npos || colon == std::string_view::npos || colon < open ||
      name.back() != ']') {
    return std::nullopt;
  }
  const auto begin = parse_number(name.substr(open + 1, colon - open - 1));
  const auto end = parse_number(name.substr(colon + 1, name.size() - colon - 2));
  std::string_view tensor = name.substr(0, open);
  const bool second = tensor.ends_with(kSecondSuffix);
  const std::string_view suffix = second ? kSecondSuffix : kFirstSuffix;
  if (!tensor.ends_with(suffix) || !begin || !end) return std::nullopt;
  tensor.remove_suffix(suffix.size());
  const int param_idx = layout.find(tensor);
  if (param_idx < 0 || *begin < 0 || *begin >= *end || *end > layout[param_idx].size()) return std::nullopt;
  return NamedPiece{{param_idx, *begin, *end, 0}, second ? Moment::kSecond : Moment::kFirst};
}

}  // namespace tern::trainer
