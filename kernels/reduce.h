// Element-wise reduction of n buffers in one pass, the division that makes an average of a sum, and the
// multiplication that comes before a pre-multiplied sum.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/base/dtype.h"

namespace tern {

struct ReduceOptions {
  /// Write past the cache: for results much larger than the cache that nobody reads soon. Same bytes either
  /// way.
  bool stream = false;
};

/// n elements each, read in this order.
struct Sources {
  std::span<const void* const> srcs;
  size_t n = 0;
  ReduceOptions options = {};
};

/// dst[i] = ((srcs[0][i] op srcs[1][i]) op srcs[2][i]) ..., strictly in the order given.
///
/// srcs:      at least 1 buffer (1 copies) of n elements each; dst may be any of them, but not overlap one
/// partly.
///            Any alignment of the element type; 64 bytes is fastest.
/// Computes:  in the element type; 16- and 8-bit floats in fp32 over all sources, rounded once (nearest
///            even). Integers wrap. min and max return NaN when any source has one. kAvg and kPremulSum add:
///            see average() and scale().
/// Bytes:     (srcs.size() + 1) * n * size_of(dtype) whatever the number of sources; nothing is read twice.
/// Same bytes on every instruction set.
void reduce(Dtype dtype, Op op, void* dst, const Sources& sources);

struct ReduceArgs {
  Dtype dtype = Dtype::kFloat32;
  Op op = Op::kSum;
  std::span<void* const> dsts;        ///< every one receives the result
  std::span<const void* const> srcs;  ///< read in this order
  size_t n = 0;                       ///< elements
  ReduceOptions options = {};
};

/// The same with several destinations: each source is read once. A dst may be a src exactly; dsts do not
/// overlap.
void reduce_to_many(const ReduceArgs& args);

/// data[i] /= n_ranks: what kAvg does to a sum. Floats are divided in their accumulation type (fp32 for 16
/// and 8 bits) and rounded to nearest even, integers truncate towards zero. n_ranks >= 1. Bytes moved: 2 * n
/// * size_of(dtype).
void average(Dtype dtype, void* data, int n_ranks, size_t n);

struct ScaleArgs {
  Dtype dtype = Dtype::kFloat32;
  const void* in = nullptr;
  void* out = nullptr;  ///< may be `in`
  double factor = 1;    ///< taken as an element (integers: truncated) or, for short floats, as fp32
  size_t n = 0;         ///< elements
};

/// out[i] = in[i] * factor: what kPremulSum does to an input. Integers wrap. Bytes moved: 2 * n *
/// size_of(dtype).
void scale(const ScaleArgs& args);

}  // namespace tern
