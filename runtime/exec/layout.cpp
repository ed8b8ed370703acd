#include "runtime/exec/layout.h"

namespace tern {

Layout::Layout(const Plan& plan, const Chunks& chunks, Cut cut)
    : chunks_(chunks), n_chunks_(plan.n_chunks), owners_fixed_(owners_fixed(plan.collective)) {
  if (owners_fixed_) per_rank_ = std::max(1, plan.n_chunks / plan.n_ranks);
  const size_t whole_chunk = largest_chunk();
  if (chunks.is_pieces()) {
    max_chunk_ = whole_chunk;
    return;
  }
  const auto n_chunks = static_cast<size_t>(n_chunks_);
  size_t segment = cut.segment == 0 ? chunks.n : cut.segment;
  segment = std::max<size_t>(1, (segment + cut.grain - 1) / cut.grain * cut.grain);
  stride_ = owners_fixed_ ? segment : segment * n_chunks;
  const size_t extent = owners_fixed_ ? whole_chunk : chunks.n;
  n_segments_ = std::max<size_t>(1, (extent + stride_ - 1) / stride_);
  if (n_segments_ == 1) {
    max_chunk_ = whole_chunk;
  } else {
    max_chunk_ = owners_fixed_ ? stride_ : (stride_ + n_chunks - 1) / n_chunks;
  }
}

// Uncut.
size_t Layout::largest_chunk() const {
  size_t most = 0;
  if (chunks_.is_pieces()) {
    for (const auto& pieces : {chunks_.in_pieces, chunks_.out_pieces})
      for (const Range& piece : pieces) most = std::max(most, piece.size());
    return most;
  }
  size_t extent = chunks_.n;
  auto parts = static_cast<size_t>(n_chunks_);
  if (!chunks_.offsets.empty()) {
    extent = 0;
    for (size_t r = 0; r + 1 < chunks_.offsets.size(); ++r)
      extent = std::max(extent, chunks_.offsets[r + 1] - chunks_.offsets[r]);
    parts = static_cast<size_t>(per_rank_);
  }
  return (extent + parts - 1) / parts;
}

}  // namespace tern
