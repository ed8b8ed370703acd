// Where a plan's chunks lie in memory, and how a call is cut into segments.
//
// all_reduce, reduce and broadcast do not care which rank handles which element, so a segment is a run of the
// whole vector with the plan's chunks inside it. Where owners are fixed, a segment is a run inside every
// chunk. Chunks may be uneven: then each rank's count is given, or, where only the two ends of a message know
// its size, the pieces themselves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "runtime/plan/plan.h"

namespace tern {

/// Elements [begin, end) of a vector.
struct Range {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// What a call's chunks are. Value type; the spans outlive the call.
struct Chunks {
  size_t n = 0;  ///< elements of the whole vector
  /// Uneven counts: rank r owns [offsets[r], offsets[r + 1]); n_ranks + 1 numbers. Empty: even.
  std::span<const size_t> offsets = {};
  /// Chunk c of kInput and of kOutput, where they are not parts of one vector; then not cut in segments.
  std::span<const Range> in_pieces = {};
  std::span<const Range> out_pieces = {};

  bool is_pieces() const { return !in_pieces.empty() || !out_pieces.empty(); }
};

/// The cutting of one call; value type.
class Layout {
 public:
  struct Cut {
    size_t segment = 0;  ///< most elements of a chunk in one segment; 0: not cut
    size_t grain = 1;    ///< segments are multiples of this many elements
  };

  Layout(const Plan& plan, const Chunks& chunks, Cut cut);

  size_t n_segments() const { return n_segments_; }

  /// The elements that a ref covers in one segment.
  Range range(const Ref& ref, size_t segment) const {
    if (chunks_.is_pieces())
      return (ref.buffer == Buffer::kInput ? chunks_.in_pieces
                                           : chunks_.out_pieces)[static_cast<size_t>(ref.chunk)];
    if (!owners_fixed_) {
      const size_t begin = std::min(chunks_.n, segment * stride_);
      const size_t size = std::min(chunks_.n, begin + stride_) - begin;
      return {begin + chunk_begin(size, ref.chunk, n_chunks_),
              begin + chunk_begin(size, ref.chunk + ref.n_chunks, n_chunks_)};
    }
    const size_t begin = begin_of(ref.chunk);
    const size_t end = begin_of(ref.chunk + ref.n_chunks);
    if (n_segments_ == 1) return {begin, end};
    const size_t from = std::min(end, begin + segment * stride_);
    return {from, std::min(end, from + stride_)};
  }

  /// First element of a chunk in the whole vector, not cut.
  size_t begin_of(int chunk) const {
    if (chunks_.offsets.empty()) return chunk_begin(chunks_.n, chunk, n_chunks_);
    const auto rank = static_cast<size_t>(chunk / per_rank_);
    if (rank + 1 == chunks_.offsets.size()) return chunks_.n;
    const size_t begin = chunks_.offsets[rank];
    return begin + chunk_begin(chunks_.offsets[rank + 1] - begin, chunk % per_rank_, per_rank_);
  }

  /// Most elements that range() gives for one chunk.
  size_t max_chunk() const { return max_chunk_; }

 private:
  size_t largest_chunk() const;

  Chunks chunks_;
  int n_chunks_;
  int per_rank_ = 1;  ///< chunks of a rank, where owners are fixed
  bool owners_fixed_;
  size_t stride_ = 0;  ///< whole-vector elements of a segment, or chunk elements where owners are fixed
  size_t n_segments_ = 1;
  size_t max_chunk_ = 0;
};

}  // namespace tern
