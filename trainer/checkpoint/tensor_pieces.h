// Ranges of the flat buffer as named pieces of tensors, and back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/train_state.h"
#include "trainer/storage/safetensors.h"

namespace tern::trainer {

/// Elements [begin, end) of one parameter, and where the owner keeps them.
struct TensorPiece {
  int param_idx = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t state_begin = 0;  ///< of its first element in the owner's moment vectors

  int64_t size() const { return end - begin; }
};

/// The ranges without padding, cut at parameters, neighbours joined; ascending.
std::vector<TensorPiece> pieces_of(const ParameterLayout& layout, std::span<const OwnedRange> ranges);

enum class Moment : uint8_t { kFirst, kSecond };

/// "model.norm.weight.exp_avg[0:384]", exp_avg_sq for the second moment (torch's names).
std::string piece_name(const ParameterLayout& layout, const TensorPiece& piece, Moment moment);

struct NamedPiece {
  TensorPiece piece;  ///< state_begin is 0
  Moment moment = Moment::kFirst;
};
/// The reverse; nothing when the name is not one, its range does not fit its parameter, or there is no such
/// parameter.
std::optional<NamedPiece> parse_piece_name(const ParameterLayout& layout, std::string_view name);

}  // namespace tern::trainer
