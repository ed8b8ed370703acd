// Copying bytes, with the choice to write past the cache.
#pragma once

#include <cstddef>

namespace tern {

/// From how many bytes on a result is large enough to write past the cache: well beyond the second-level
/// cache of one core. Measured on a 2-core Xeon with 2 MiB of that: bench/compare --ranks 2 --min 4M.
inline constexpr size_t kStreamBytes = size_t{4} << 20;

struct CopyOptions {
  /// Non-temporal stores: a third less memory traffic for a destination that is larger than the cache and is
  /// not read soon; slower when it is.
  bool stream = false;
};

/// dst[0, n_bytes) = src[0, n_bytes). No overlap, except that dst == src does nothing. Any alignment.
/// Bytes moved: 2 * n_bytes with stream, else 3 * n_bytes (the destination is read before it is overwritten).
void copy(void* dst, const void* src, size_t n_bytes, CopyOptions options = {});

}  // namespace tern
