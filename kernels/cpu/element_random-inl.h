// ElementRandom on vectors: the same numbers as Philox(kElementSeed, step).at(element_idx). Included once per
// instruction set.
#if defined(TERN_KERNELS_CPU_ELEMENT_RANDOM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TERN_KERNELS_CPU_ELEMENT_RANDOM_INL_H_
#undef TERN_KERNELS_CPU_ELEMENT_RANDOM_INL_H_
#else
#define TERN_KERNELS_CPU_ELEMENT_RANDOM_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "kernels/block_scalar.h"

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr size_t kTile = 128;

#if HWY_TARGET != HWY_SCALAR
using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using U = hn::RebindToUnsigned<F>;
using VF = hn::VFromD<F>;

/// Philox(kElementSeed, step) of one block number per lane: words[j] is number 4 * block + j of the stream.
HWY_INLINE void philox_words(hn::VFromD<U> block, uint32_t block_high, uint32_t step,
                             hn::VFromD<U> (&words)[4]) {
  const U u32;
  const hn::Repartition<uint64_t, U> u64;
  const auto multiply = [&](hn::VFromD<U> a, uint32_t b, hn::VFromD<U>& high) HWY_ATTR {
    const auto factor = hn::Set(u32, b);
    const auto even = hn::MulEven(a, factor);
    const auto odd = hn::MulEven(hn::BitCast(u32, hn::ShiftRight<32>(hn::BitCast(u64, a))), factor);
    high = hn::OddEven(hn::BitCast(u32, odd), hn::BitCast(u32, hn::ShiftRight<32>(even)));
    return hn::OddEven(hn::BitCast(u32, hn::ShiftLeft<32>(odd)), hn::BitCast(u32, even));
  };
  auto c0 = block;
  auto c1 = hn::Set(u32, block_high);
  auto c2 = hn::Set(u32, step);
  auto c3 = hn::Zero(u32);
  auto key0 = static_cast<uint32_t>(kElementSeed);
  auto key1 = static_cast<uint32_t>(kElementSeed >> 32);
  for (int round = 0; round < 10; ++round) {
    hn::VFromD<U> high0, high1;
    const auto low0 = multiply(c0, 0xD2511F53, high0);
    const auto low1 = multiply(c2, 0xCD9E8D57, high1);
    c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(u32, key0));
    c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(u32, key1));
    c1 = low1;
    c3 = low0;
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

/// stochastic_offset() of kTile elements.
HWY_INLINE void stochastic_offsets(const ElementRandom& random, float* HWY_RESTRICT out) {
  const U u32;
  const F f;
  constexpr size_t kLanes = hn::MaxLanes(u32);
  const uint64_t first_block = random.first / 4;
  const size_t skipped = random.first % 4;
  HWY_ALIGN float offsets[kTile + 4 * kLanes];
  for (size_t at = 0; at < kTile + skipped; at += 4 * kLanes) {
    const uint64_t block = first_block + at / 4;
    const auto low = static_cast<uint32_t>(block);
    const auto high = static_cast<uint32_t>(block >> 32);
    if (low > UINT32_MAX - kLanes) [[unlikely]] {  // lanes that differ in the upper half
      const Philox philox(kElementSeed, random.step);
      for (size_t i = 0; i < 4 * kLanes; ++i) offsets[at + i] = stochastic_offset(philox.at(4 * block + i));
      continue;
    }
    hn::VFromD<U> words[4];
    philox_words(hn::Add(hn::Iota(u32, 0), hn::Set(u32, low)), high, random.step, words);
    const auto offset = [&](hn::VFromD<U> word) HWY_ATTR {
      return hn::Mul(hn::ConvertTo(f, hn::BitCast(I(), hn::ShiftRight<16>(word))), hn::Set(f, 0x1p-16F));
    };
    hn::StoreInterleaved4(offset(words[0]), offset(words[1]), offset(words[2]), offset(words[3]), f,
                          offsets + at);
  }
  std::memcpy(out, offsets + skipped, kTile * sizeof(float));
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#endif  // TERN_KERNELS_CPU_ELEMENT_RANDOM_INL_H_
