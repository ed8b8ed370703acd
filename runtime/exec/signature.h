// Who called what: packed into the envelope of every message, so that ranks that disagree learn it from the
// first one.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/dtype.h"
#include "runtime/codec/codec.h"
#include "runtime/plan/plan.h"
#include "runtime/transport/transport.h"

namespace tern {

/// One call as its caller made it; must be equal on all ranks.
struct Signature {
  uint32_t sequence = 0;  ///< call number of the communicator, modulo 2^20
  Collective collective = Collective::kBarrier;
  Dtype dtype = Dtype::kFloat32;
  Op op = Op::kSum;
  CodecSpec codec;
  int root = 0;
  uint32_t plan = 0;   ///< algorithm's registry index and segment size class, modulo 2^12
  uint64_t count = 0;  ///< elements of the whole vector
};

/// Of a message of a group, which is between two ranks only: no sequence number, and the count is its bytes.
Signature message_signature();

/// Bits of Envelope::call from the low end: sequence 20, collective 4, dtype 4, op 4, codec 8, root 12,
/// plan 12.
Envelope pack(const Signature& signature);
Signature unpack(const Envelope& envelope);
/// "all_reduce #12 (fp32, sum, 1048576 elements, codec none)".
std::string to_string(const Signature& signature);

/// The error when `theirs` arrived from `peer` where `mine` was due on `rank`: says who called what.
Error mismatch_error(const Signature& mine, int rank, const Signature& theirs, int peer);

}  // namespace tern
