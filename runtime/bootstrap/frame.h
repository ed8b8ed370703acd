// What the store's server and its clients say to each other once the handshake is over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/status.h"

namespace tern {

enum class FrameType : uint8_t {
  kSet,      ///< client: key, value
  kGet,      ///< client: key; answered when it is set
  kLook,     ///< client: key; answered at once
  kWatch,    ///< client: key; answered when it is set, whatever fails meanwhile
  kFail,     ///< client: value = packed error
  kLeave,    ///< client: ends in good order
  kReply,    ///< server: to `id`; value
  kRefused,  ///< server: to `id`; value = packed error
  kFailed,   ///< server: the world's first failure; value = packed error
  kClosing,  ///< server: rank 0 ends in good order, so the end of this connection is no failure
};
inline constexpr auto kLastFrameType = FrameType::kClosing;

/// On the wire: length of the rest (32 bits), type (8), id (64), key and value (each 32 bits of length, then
/// bytes).
struct Frame {
  FrameType type = FrameType::kSet;
  uint64_t id = 0;
  std::string key = {};
  std::string value = {};
  bool operator==(const Frame&) const = default;
};

inline constexpr size_t kMaxFrameBytes = size_t{64} << 20;

void append_frame(std::string& out, const Frame& frame);
/// Removes the first whole frame from `buffer`; nothing while it is not complete.
/// Errors: kCorrupt (too long, unknown type, lengths that do not add up); the connection is then useless.
Result<std::optional<Frame>> take_frame(std::string& buffer);

std::string pack_error(const Error& error);
/// An error that cannot be unpacked becomes kCorrupt.
Error unpack_error(std::string_view bytes);

}  // namespace tern
