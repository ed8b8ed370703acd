// Where a plan's chunks lie in memory, and how a call is cut into segments.
//
// all_reduce and broadcast do not care which rank handles which element, so a segment is a run of the whole
// vector with the plan's chunks inside it. Where owners are fixed (reduce_scatter, all_gather), a segment is
// a run inside every chunk.
#pragma once

#include <algorithm>
#include <cstddef>

#include "runtime/plan/plan.h"

namespace tern {

/// Elements [begin, end) of the whole vector.
struct Range {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// The cutting of one call; value type.
class Layout {
 public:
  struct Cut {
    size_t segment = 0;  ///< most elements of a chunk in one segment; 0: not cut
    size_t grain = 1;    ///< segments are multiples of this many elements
  };

  /// n: elements of the whole vector.
  Layout(Collective collective, int n_chunks, size_t n, Cut cut) : n_(n), n_chunks_(n_chunks) {
    owners_fixed_ = owners_fixed(collective);
    const auto chunks = static_cast<size_t>(n_chunks);
    size_t segment = cut.segment == 0 ? n : cut.segment;
    segment = std::max<size_t>(1, (segment + cut.grain - 1) / cut.grain * cut.grain);
    stride_ = owners_fixed_ ? segment : segment * chunks;
    const size_t extent = owners_fixed_ ? (n + chunks - 1) / chunks : n;
    n_segments_ = std::max<size_t>(1, (extent + stride_ - 1) / stride_);
  }

  size_t n_segments() const { return n_segments_; }

  /// The elements of `n_refs` chunks from `chunk` on, in one segment.
  Range range(int chunk, int n_refs, size_t segment) const {
    if (!owners_fixed_) {
      const size_t begin = std::min(n_, segment * stride_);
      const size_t size = std::min(n_, begin + stride_) - begin;
      return {begin + chunk_begin(size, chunk, n_chunks_),
              begin + chunk_begin(size, chunk + n_refs, n_chunks_)};
    }
    const size_t begin = chunk_begin(n_, chunk, n_chunks_);
    const size_t end = chunk_begin(n_, chunk + n_refs, n_chunks_);
    if (n_segments_ == 1) return {begin, end};
    const size_t from = std::min(end, begin + segment * stride_);
    return {from, std::min(end, from + stride_)};
  }

  /// Most elements that range() gives for one chunk.
  size_t max_chunk() const {
    const auto chunks = static_cast<size_t>(n_chunks_);
    const size_t extent = n_segments_ == 1 ? n_ : (owners_fixed_ ? stride_ * chunks : stride_);
    return (extent + chunks - 1) / chunks;
  }

 private:
  size_t n_;
  int n_chunks_;
  bool owners_fixed_ = false;
  size_t stride_ = 0;  ///< whole-vector elements of a segment, or chunk elements where owners are fixed
  size_t n_segments_ = 1;
};

}  // namespace tern
