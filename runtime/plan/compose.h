// Plans made of plans.
#pragma once

#include <span>

#include "runtime/plan/plan.h"

namespace tern {

/// First `a`, then `b`, as one plan of rank `a.rank` (rounds of b follow those of a).
/// Errors: kInvalidArgument when the two are of different ranks, worlds or chunk counts.
Result<Plan> sequence(const Plan& a, const Plan& b);

/// Runs `local` (a plan over `members.size()` ranks) among `members` (global ranks, in group order) of a
/// world. The plan's peers become global ranks; chunk numbers stay.
Result<Plan> on_group(const Plan& local, std::span<const int> members, int world);

/// Every chunk cut in `factor` chunks: chunk c becomes [c * factor, (c + 1) * factor). The bytes moved stay
/// the same.
Plan refine(const Plan& plan, int factor);

/// The plan's whole vector becomes chunk `chunk` of a vector of `n_chunks` such chunks.
Plan on_chunk(const Plan& plan, int chunk, int n_chunks);

/// Reads of kInput become reads of kOutput: the plan as a later stage, which works on what earlier stages
/// wrote.
Plan in_output(const Plan& plan);

/// The same exchange with encoded messages: kSend of a chunk becomes kEncode + kSend of the wire chunk,
/// kRecvReduce becomes kRecv + kDecodeAccumulate, kRecv becomes kRecv + kDecode; an owner that sends its
/// finished chunk to several peers encodes it once and replaces its own copy by the decoded bytes, so that
/// all ranks end with identical bytes; received encoded chunks are forwarded verbatim.
///
/// Rounds: twice as many; what the sends of old round r need is encoded in round 2r, and sent in 2r + 1.
/// Errors: kUnsupported when the plan would quantise one contribution twice on a level (ring, halving), is
///         encoded already or a barrier. One rank alone may not see it: ask Algorithm::can_encode first.
Result<Plan> with_codec(const Plan& plan);

}  // namespace tern
