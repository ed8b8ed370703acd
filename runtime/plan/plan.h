// A collective as a value: the steps one rank takes over chunks. No bytes in it: one plan for every size.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace tern {

enum class Collective : uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kBarrier,
  kReduce,    ///< the sum, at root only
  kAllToAll,  ///< n_chunks == n_ranks: input chunk j is for rank j, output chunk i comes from rank i
  kGather,    ///< input: the rank's own chunks; output: the whole vector, at root only
  kScatter,   ///< input: the whole vector, at root only; output: the rank's own chunks
  kSendRecv,  ///< a shift by one: the vector goes to rank + 1, that of rank - 1 comes; one chunk
};
inline constexpr int kNumCollectives = 10;
std::string_view name(Collective collective);
Result<Collective> parse_collective(std::string_view text);

/// Whether elements are combined with an operator.
constexpr bool reduces(Collective c) {
  return c == Collective::kAllReduce || c == Collective::kReduceScatter || c == Collective::kReduce;
}
constexpr bool has_root(Collective c) {
  return c == Collective::kBroadcast || c == Collective::kReduce || c == Collective::kGather ||
         c == Collective::kScatter;
}
/// Whether chunks belong to ranks, n_chunks / n_ranks to each, so that which elements a chunk holds is not
/// the plan's choice. With uneven counts, a rank's chunks are balanced shares of its count.
constexpr bool owners_fixed(Collective c) {
  return c == Collective::kReduceScatter || c == Collective::kAllGather || c == Collective::kAllToAll ||
         c == Collective::kGather || c == Collective::kScatter;
}

/// The memory a step reads or writes. In place, chunk c of kInput and chunk c of kOutput are the same bytes
/// wherever a rank has both (for reduce_scatter kOutput is chunk `rank` of kInput, for all_gather kInput is
/// chunk `rank` of kOutput); plans are correct either way, unless Plan::out_of_place_only.
/// Which chunks a rank has of them: held_chunks().
enum class Buffer : uint8_t {
  kInput,
  kOutput,
  kScratch,  ///< `Plan::n_scratch` places for a chunk, private to this call
  kWire,     ///< `Plan::n_wire` places for an encoded chunk, private to this call
};

/// A run of whole chunks in one buffer. Chunk c of a vector of `n` elements cut in `C` chunks is the balanced
/// share [c*n/C, (c+1)*n/C): see chunk_begin(). `chunk` says which share it is, and so how many elements, in
/// every buffer. In all_to_all it is a block: of kInput the one for rank `chunk`, elsewhere one from rank
/// `chunk` (plans that move foreign blocks label them as they like, and run with equal blocks only).
struct Ref {
  Buffer buffer = Buffer::kInput;
  int16_t chunk = 0;  ///< first chunk, counted in the collective's whole vector (also for a one-chunk buffer)
  int16_t n_chunks = 1;  ///< 0: an empty message (barrier)
  int16_t slot = 0;      ///< kScratch and kWire only: place of the first chunk; a place holds any one chunk
  bool operator==(const Ref&) const = default;
};

enum class StepKind : uint8_t {
  kSend,              ///< src -> peer
  kRecv,              ///< peer -> dst (overwrites)
  kRecvReduce,        ///< dst = dst op incoming
  kCopy,              ///< dst = src
  kReduce,            ///< dst = dst op src
  kEncode,            ///< wire dst = encode(src) (folds in and rewrites the residual where there is one)
  kDecode,            ///< dst = decode(wire src)
  kDecodeAccumulate,  ///< dst = dst + decode(wire src)
};
std::string_view name(StepKind kind);
/// Whether a step of this kind uses Step::src, and Step::dst.
constexpr bool has_src(StepKind kind) {
  return kind != StepKind::kRecv && kind != StepKind::kRecvReduce;
}
constexpr bool has_dst(StepKind kind) {
  return kind != StepKind::kSend;
}

/// One step.
///
/// Messages:  a round's sends read what earlier rounds wrote and are posted first, as are its receives. A
///            kRecv alone may land as soon as it is posted, when sends of the round before may not have ended
///            (except those to the same peer, which takes them before it sends). Between two ranks messages
///            match in order, and a send of round r is received in round r.
/// Work:      happens in the order listed. Consecutive steps with the same dst that start with kRecv, kCopy,
///            kRecvReduce or kReduce and go on with kRecvReduce or kReduce are one reduction in that order,
///            which reads all its operands before it writes: in place, dst may be one of them.
/// Chunks:    src and dst, and both ends of a message, are the same chunks (all_to_all: as many). kInput is
///            never written.
/// verify() proves all of it.
struct Step {
  StepKind kind = StepKind::kCopy;
  int16_t peer = -1;
  uint16_t round = 0;
  Ref src;
  Ref dst;
};

/// What one rank does. Value type; printable; made by a pure function of (collective, group, algorithm).
struct Plan {
  Collective collective = Collective::kBarrier;
  std::string algorithm;
  int rank = 0;
  int n_ranks = 1;
  int root = 0;
  int n_chunks = 1;                ///< of the whole vector; where owners_fixed(), a multiple of n_ranks
  int n_scratch = 0;               ///< scratch slots, each as large as the largest chunk
  int n_wire = 0;                  ///< encoded slots, each as large as the largest encoded chunk
  int n_rounds = 0;                ///< the same on all ranks
  bool encoded = false;            ///< some messages of some rank go from kWire to kWire: encoded
  bool encodes_sums = false;       ///< owners encode their finished sums; the same on all ranks
  bool moves_runs = false;         ///< some step of some rank works on several chunks; the same on all ranks
  bool uneven = false;             ///< made for chunks of different sizes
  bool out_of_place_only = false;  ///< kInput and kOutput must not share bytes on this rank
  std::vector<Step> steps;         ///< sorted by round
};

/// One past the last step of the reduction that starts at steps[first] (see Step); first + 1 for a step that
/// stands alone. Cost: its length.
size_t reduction_end(std::span<const Step> steps, size_t first);

/// Whether its chunks are not cut into segments: they belong to ranks, and steps move runs of them, each as
/// one message. The same on all ranks.
bool must_stay_whole(const Plan& plan);

/// The chunks [first, first + n) that a rank has of kInput or kOutput; n = 0: that buffer is not there (the
/// output of a reduce away from its root).
struct HeldChunks {
  int first = 0;
  int n = 0;
};
HeldChunks held_chunks(const Plan& plan, Buffer buffer);

/// By scratch place: the first place of its region. Places that some run of chunks has together are one
/// region, whose chunks lie as close as in the vector: in it, either all refs start at its first place, or
/// chunk - slot is the same in all. (all_to_all has equal blocks where runs move, so that there places are
/// blocks apart.) Cost: O(steps).
std::vector<int> scratch_regions(const Plan& plan);

/// Whether two refs name the same bytes: chunk by chunk the same place of the same buffer, or, in place, of
/// kInput and kOutput.
bool same_memory(const Ref& a, const Ref& b, bool in_place);

std::string to_string(const Step& step);
std::string to_string(const Plan& plan);

/// First element of chunk `c` when n elements are cut in C balanced chunks: c*n/C without overflow.
constexpr size_t chunk_begin(size_t n, int c, int C) {
  const auto uc = static_cast<size_t>(c);
  const auto uC = static_cast<size_t>(C);
  return (n / uC) * uc + (n % uC) * uc / uC;
}

}  // namespace tern
