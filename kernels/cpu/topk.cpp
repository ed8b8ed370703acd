// topk on vectors. Finding the k largest of 4096 without sorting them:
// 1. While v = in + residual is computed, the places where |v| reaches a guess of the threshold are listed: a
// little
//    below the last block's k-th largest magnitude, because neighbouring blocks are alike. v becomes the
//    residual only after this pass, when it is known to be finite; in and residual are then still in the
//    first-level cache.
// 2. When the guess was bad (fewer than k or many more reach it), a bound that holds for every block replaces
// it: of
//    each residue class of indices modulo k the maximum is taken; those are k elements, so the smallest of
//    them is at most the k-th largest. About 3.5 k of random elements reach it.
// 3. Bisection over the magnitudes in the list finds the threshold that exactly k reach, or the value at
// which ties
//    must be broken. The choice does not depend on the guess.
#include "kernels/topk.h"

#include <array>
#include <cstring>

#include "kernels/block_scale.h"
#include "kernels/scalar.h"
#include "kernels/topk_block.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/topk.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;  // magnitudes as integers: their order is that of the floats, NaN above inf
constexpr size_t kLanes = hn::MaxLanes(F());

/// Lists have room behind the last entry for a whole vector, or for eight places of which some are no hits.
constexpr size_t kSpare = std::max<size_t>(kLanes, 8);
using IntList = std::array<int32_t, kTopkBlock + kSpare>;
/// One block on its way. Lists begin at cache lines. NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
struct Work {
  const float* in;
  float* residual;    // null: none; else it holds v from store_sum() on
  int32_t guess = 1;  // of a threshold, from the block before
  alignas(64) IntList candidates;
  alignas(64) IntList magnitudes;
  alignas(64) std::array<int32_t, kTopkMax + kSpare> kept;

  const float* v() const { return residual != nullptr ? residual : in; }
};

HWY_INLINE hn::VFromD<I> magnitude(hn::VFromD<F> v) {
  return hn::BitCast(I(), hn::Abs(v));
}

/// Appends to a list, in order, the indices that are marked in masks.
class IndexList {
 public:
  explicit IndexList(int32_t* list) : list_(list) {}
  size_t size() const { return n_; }

#if HWY_TARGET == HWY_AVX3  // compresses a vector in one instruction
  template <class Mask>
  HWY_INLINE void mark(Mask mask, size_t i) {
    const I i32;
    hn::StoreU(hn::Compress(hn::Add(hn::Iota(i32, 0), hn::Set(i32, static_cast<int32_t>(i))), mask), i32,
               list_ + n_);
    n_ += hn::CountTrue(i32, mask);
  }
  HWY_INLINE void end_word(size_t) {}
#else
  template <class Mask>
  HWY_INLINE void mark(Mask mask, size_t i) {
    uint8_t bits[8] = {};  // StoreMaskBits may write 8
    hn::StoreMaskBits(I(), mask, bits);
    word_ |= static_cast<uint64_t>(bits[0]) << i % kWordBits;
  }
  /// Lists the places of the bits: some at a time without a branch, because the number in a word is hard to
  /// predict. Source: Langdale & Lemire, "Parsing gigabytes of JSON per second", VLDB Journal 2019.
  HWY_INLINE void end_word(size_t begin) {
    constexpr size_t kAtATime = 4;
    static_assert(kLanes <= 8 && kAtATime <= kSpare);
    const auto count = static_cast<size_t>(std::popcount(word_));
    for (size_t j = 0; j < count; j += kAtATime) {
      for (size_t slot = n_ + j; slot < n_ + j + kAtATime; ++slot) {
        list_[slot] = static_cast<int32_t>(begin) + std::countr_zero(word_);
        word_ &= word_ - 1;
      }
    }
    n_ += count;
  }
#endif
  static constexpr size_t kWordBits = 64;

 private:
  int32_t* list_;
  size_t n_ = 0;
  uint64_t word_ = 0;
};

struct Listed {
  size_t n;        // candidates
  int32_t absmax;  // bits of max |v|
};

/// Lists the indices where |v| reaches `threshold`; v is in + residual when kAdd, else what work.v() holds.
template <bool kAdd>
HWY_INLINE Listed list_candidates(Work& work, int32_t threshold) {
  const F f;
  const I i32;
  const auto below = hn::Set(i32, threshold - 1);
  const float* from = kAdd ? work.in : work.v();
  auto absmax = hn::Zero(i32);
  IndexList list(work.candidates.data());
  for (size_t begin = 0; begin < kTopkBlock; begin += IndexList::kWordBits) {
    for (size_t i = begin; i < begin + IndexList::kWordBits; i += kLanes) {
      auto v = hn::LoadU(f, from + i);
      if constexpr (kAdd) v = hn::Add(v, hn::LoadU(f, work.residual + i));
      absmax = hn::Max(absmax, magnitude(v));  // as integers, so that NaN is the largest
      list.mark(hn::Gt(magnitude(v), below), i);
    }
    list.end_word(begin);
  }
  return {.n = list.size(), .absmax = hn::GetLane(hn::MaxOfLanes(i32, absmax))};
}

/// residual += in.
HWY_INLINE void store_sum(Work& work) {
  const F f;
  for (size_t i = 0; i < kTopkBlock; i += kLanes) {
    hn::StoreU(hn::Add(hn::LoadU(f, work.in + i), hn::LoadU(f, work.residual + i)), f, work.residual + i);
  }
}

/// A threshold that at least k magnitudes reach.
template <int k>
HWY_INLINE int32_t safe_threshold(const Work& work) {
  const F f;
  const I i32;
  constexpr size_t kRows = static_cast<size_t>(k) / kLanes;
  hn::VFromD<I> class_max[kRows];
  for (auto& max : class_max) max = hn::Zero(i32);
  for (size_t i = 0; i < kTopkBlock; i += kRows * kLanes) {
    for (size_t row = 0; row < kRows; ++row) {
      class_max[row] = hn::Max(class_max[row], magnitude(hn::LoadU(f, work.v() + i + row * kLanes)));
    }
  }
  auto least = class_max[0];
  for (const auto& max : class_max) least = hn::Min(least, max);
  return hn::GetLane(hn::MinOfLanes(i32, least));
}

/// Copies the candidates' magnitudes into a list, filled up with -1 to whole vectors.
HWY_INLINE void list_magnitudes(Work& work, size_t n) {
  const float* v = work.v();
  for (size_t j = 0; j < n; ++j) {
    work.magnitudes[j] = static_cast<int32_t>(magnitude_bits(v[static_cast<size_t>(work.candidates[j])]));
  }
  hn::StoreU(hn::Set(I(), -1), I(), work.magnitudes.data() + n);
}

HWY_INLINE size_t count_reaching(const Work& work, size_t n, int32_t threshold) {
  const I i32;
  const auto below = hn::Set(i32, threshold - 1);
  size_t count = 0;
  for (size_t j = 0; j < n; j += kLanes) {
    count += hn::CountTrue(i32, hn::Gt(hn::Load(i32, work.magnitudes.data() + j), below));
  }
  return count;
}

struct Cut {
  int32_t threshold;
  size_t n_reaching;  // k, or more when magnitudes equal to the threshold tie
};

/// The largest threshold that at least k magnitudes reach, or the first one found that exactly k reach.
struct Bounds {
  int32_t low;   // n reach it
  int32_t high;  // none reaches it
};
HWY_INLINE Cut bisect(const Work& work, size_t n, size_t k, Bounds bounds) {
  auto [low, high] = bounds;
  size_t n_low = n;
  while (n_low != k && high - low > 1) {
    const int32_t middle = low + (high - low) / 2;
    const size_t count = count_reaching(work, n, middle);
    const bool enough = count >= k;
    low = enough ? middle : low;
    n_low = enough ? count : n_low;
    high = enough ? high : middle;
  }
  return {.threshold = low, .n_reaching = n_low};
}

/// Of n >= k candidates keeps those that reach the cut; of ties at the cut the lower indices.
HWY_INLINE void keep_candidates(Work& work, size_t n, size_t k, Cut cut) {
  size_t n_kept = 0;
  if (cut.n_reaching == k) {
    for (size_t j = 0; j < n; ++j) {
      work.kept[n_kept] = work.candidates[j];
      n_kept += work.magnitudes[j] >= cut.threshold ? 1 : 0;
    }
    return;
  }
  size_t n_ties = k - count_reaching(work, n, cut.threshold + 1);
  for (size_t j = 0; n_kept < k; ++j) {
    const int32_t m = work.magnitudes[j];
    const bool tie_kept = m == cut.threshold && n_ties > 0;
    if (tie_kept) --n_ties;
    if (m > cut.threshold || tie_kept) work.kept[n_kept++] = work.candidates[j];
  }
}

/// When fewer than k elements are not zero: keeps those and the zeros of lowest index.
void keep_with_zeros(Work& work, size_t n_nonzero, size_t k) {
  const float* v = work.v();
  size_t n_zeros = k - n_nonzero;
  size_t n_kept = 0;
  for (size_t i = 0; n_kept < k; ++i) {
    const bool zero = v[i] == 0.0F;
    if (zero && n_zeros == 0) continue;
    if (zero) --n_zeros;
    work.kept[n_kept++] = static_cast<int32_t>(i);
  }
}

/// Two indices in three bytes; every store but the last writes a fourth that the next one overwrites.
HWY_INLINE void pack_indices(const int32_t* kept, size_t k, std::byte* to) {
  for (size_t j = 0; j < k; j += 2, to += 3) {
    const uint32_t pair = static_cast<uint32_t>(kept[j]) | static_cast<uint32_t>(kept[j + 1]) << 12;
    if (j + 2 < k)
      std::memcpy(to, &pair, 4);
    else
      std::memcpy(to, &pair, 3);
  }
}

template <int k, bool kResidual>
HWY_INLINE void write_kept(Work& work, int32_t absmax, const TopkBlock& to) {
  const F f;
  const I i32;
  const hn::RebindToUnsigned<F> u32;
  const hn::Rebind<uint8_t, F> u8;
  const Bfloat16 scale = scale_of(std::bit_cast<float>(absmax));
  std::memcpy(to.scale, &scale, sizeof(scale));
  const auto step = hn::Set(f, to_float(scale));
  const auto divisor = hn::Set(f, absmax == 0 ? 1.0F : to_float(scale));
  const auto shift = hn::Set(f, kRoundingShift);
  alignas(64) std::array<float, k> rest;
  for (size_t j = 0; j < static_cast<size_t>(k); j += kLanes) {
    const auto v = hn::GatherIndex(f, work.v(), hn::Load(i32, work.kept.data() + j));
    const auto shifted = hn::Add(hn::Div(v, divisor), shift);  // its low byte is the code: see nearest_code()
    hn::StoreU(hn::TruncateTo(u8, hn::BitCast(u32, shifted)), u8, reinterpret_cast<uint8_t*>(to.values + j));
    hn::Store(hn::Sub(v, hn::Mul(hn::Sub(shifted, shift), step)), f, rest.data() + j);
  }
  pack_indices(work.kept.data(), k, to.indices);
  if constexpr (kResidual) {
    for (size_t j = 0; j < static_cast<size_t>(k); ++j) work.residual[work.kept[j]] = rest[j];
  }
}

/// A little below the cut: what the next block tries first.
HWY_INLINE int32_t guess_after(Cut cut) {
  return std::max(std::bit_cast<int32_t>(std::bit_cast<float>(cut.threshold) * 0.9F), 1);
}

template <int k, bool kResidual>
HWY_INLINE bool encode_block(Work& work, const TopkBlock& to) {
  constexpr auto kWanted = static_cast<size_t>(k);
  int32_t threshold = work.guess;
  auto [n, absmax] = list_candidates<kResidual>(work, threshold);
  if (static_cast<uint32_t>(absmax) >= kInfinityBits) [[unlikely]] {
    write_non_finite(to);
    return false;
  }
  if constexpr (kResidual) store_sum(work);
  if (n < kWanted || n > 8 * kWanted) {
    threshold = std::max(safe_threshold<k>(work), 1);  // zeros are no candidates
    n = list_candidates<false>(work, threshold).n;
  }
  if (n < kWanted) {
    keep_with_zeros(work, n, kWanted);
  } else {
    list_magnitudes(work, n);
    const Cut cut = bisect(work, n, kWanted, {.low = threshold, .high = absmax + 1});
    keep_candidates(work, n, kWanted, cut);
    work.guess = guess_after(cut);
  }
  write_kept<k, kResidual>(work, absmax, to);
  return true;
}

template <int k, bool kResidual>
size_t encode_blocks(std::span<const float> in, float* residual, TopkPlanes out) {
  Work work;
  size_t n_non_finite = 0;
  for (size_t begin = 0; begin + kTopkBlock <= in.size(); begin += kTopkBlock) {
    work.in = in.data() + begin;
    work.residual = kResidual ? residual + begin : nullptr;
    if (!encode_block<k, kResidual>(work, topk_block(out, k, begin, in.size()))) ++n_non_finite;
  }
  return n_non_finite;
}

template <int k>
size_t encode_full_blocks(std::span<const float> in, float* residual, TopkPlanes out) {
  return residual != nullptr ? encode_blocks<k, true>(in, residual, out)
                             : encode_blocks<k, false>(in, residual, out);
}

size_t topk_encode_full_blocks(std::span<const float> in, float* residual, int k, TopkPlanes out) {
  switch (k) {
    case 16:
      return encode_full_blocks<16>(in, residual, out);
    case 32:
      return encode_full_blocks<32>(in, residual, out);
    case 64:
      return encode_full_blocks<64>(in, residual, out);
    default:
      return encode_full_blocks<128>(in, residual, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern {

HWY_EXPORT(topk_encode_full_blocks);

namespace {

/// A last block of k or more elements, filled up with zeros: they have the highest indices, so none is kept.
size_t encode_last_block(std::span<const float> in, float* residual, int k, TopkPlanes out) {
  std::array<float, kTopkBlock> padded_in{};
  std::array<float, kTopkBlock> padded_residual{};
  std::copy(in.begin(), in.end(), padded_in.begin());
  if (residual == nullptr) return HWY_DYNAMIC_DISPATCH(topk_encode_full_blocks)(padded_in, nullptr, k, out);
  std::copy_n(residual, in.size(), padded_residual.begin());
  const size_t n_bad =
      HWY_DYNAMIC_DISPATCH(topk_encode_full_blocks)(padded_in, padded_residual.data(), k, out);
  std::copy_n(padded_residual.begin(), in.size(), residual);
  return n_bad;
}

}  // namespace

size_t topk_encode(std::span<const float> in, float* residual, int k, TopkPlanes out) {
  TERN_CHECK(std::find(std::begin(kTopkChoices), std::end(kTopkChoices), k) != std::end(kTopkChoices));
  const size_t n_non_finite = HWY_DYNAMIC_DISPATCH(topk_encode_full_blocks)(in, residual, k, out);
  const size_t done = in.size() / kTopkBlock * kTopkBlock;
  const auto last = in.subspan(done);
  if (last.empty()) return n_non_finite;
  float* const last_residual = residual != nullptr ? residual + done : nullptr;
  const TopkBlock to = topk_block(out, k, done, in.size());
  const TopkPlanes planes = {.indices = to.indices, .values = to.values, .scales = to.scale};
  const bool full = last.size() >= static_cast<size_t>(k);
  return n_non_finite + (full ? encode_last_block(last, last_residual, k, planes)
                              : scalar::topk_encode(last, last_residual, k, planes));
}

void topk_decode(TopkView in, int k, std::span<float> out) {
  for (size_t begin = 0; begin < out.size(); begin += kTopkBlock) {
    const auto block = out.subspan(begin, std::min(kTopkBlock, out.size() - begin));
    std::fill(block.begin(), block.end(), 0.0F);
    add_entries(topk_block(in, k, begin, out.size()), block);
  }
}

void topk_decode_accumulate(TopkView in, int k, std::span<float> out) {
  scalar::topk_decode_accumulate(in, k, out);
}

}  // namespace tern
#endif  // HWY_ONCE
