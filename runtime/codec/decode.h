// Decoding to any encodable element type, and the sum that an owner makes of all ranks' shares.
#pragma once

#include <span>

#include "runtime/codec/codec.h"

namespace tern {

/// out = the decoded elements, rounded once to out.dtype. The message passed check_header() for out.n
/// elements of out.dtype. Bytes: those of the message + out.n_bytes().
void decode(const CodecSpec& spec, const std::byte* wire, View out);

/// One operand of a sum: an encoded message, or elements of out.dtype as they are (this rank's own share,
/// which takes part exactly).
struct Share {
  const std::byte* wire = nullptr;
  const void* elements = nullptr;  ///< used when wire is null; may overlap `out` when it is the same address
};

/// out[i] = shares[0][i] + shares[1][i] + ... in this order, in fp32, rounded once to out.dtype.
///
/// shares:  at least one; messages as for decode().
/// Bytes:   every share is read and `out` is written once, however many shares there are: runs of kRunGrain
///          elements are summed in the first-level cache.
void decode_sum(const CodecSpec& spec, std::span<const Share> shares, View out);

}  // namespace tern
