// Reduction of any number of sources in one pass: the accumulators of a few vectors stay in registers while
// the loop goes over the sources, so the cost is one read of each source and one write per destination.
#include "kernels/reduce.h"

#include <array>

#include "kernels/arithmetic.h"

#include <hwy/cache_control.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/reduce.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/short_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tern {
namespace HWY_NAMESPACE {

template <Op op, class D, class V = hn::VFromD<D>>
HWY_INLINE V combine(D d, V a, V b) {
  using T = hn::TFromD<D>;
  if constexpr (op == Op::kMin || op == Op::kMax) {
    if constexpr (std::is_integral_v<T>) {
      return op == Op::kMin ? hn::Min(a, b) : hn::Max(a, b);
    } else {  // compare and select: the processors' own min and max differ on NaN and on the sign of zero
      const auto first = op == Op::kMin ? hn::Lt(a, b) : hn::Gt(a, b);
      return hn::IfThenElse(hn::Or(first, hn::IsNaN(a)), a, b);
    }
  } else if constexpr (op == Op::kProd) {
    (void)d;
    return hn::Mul(a, b);
  } else {
    return hn::Add(a, b);
  }
}

/// Products of 1- and 8-byte integers have no vector instruction on most processors.
template <class T, Op op>
inline constexpr bool kHasVectors =
    !(op == Op::kProd && std::is_integral_v<T> && (sizeof(T) == 1 || sizeof(T) == 8));

template <class T, Op op>
class Reducer {
 public:
  explicit Reducer(const ReduceArgs& args) : args_(args) {}

  void run() {
    size_t i = 0;
    if constexpr (kHasVectors<T, op>) {
      const size_t n_lanes = hn::Lanes(d_);
      const bool stream = args_.options.stream && same_alignment();
      if (stream) i = elements(0, misaligned_elements());
      if (stream) {
        for (; i + 4 * n_lanes <= args_.n; i += 4 * n_lanes) four_vectors<true>(i);
        hwy::FlushStream();
      }
      for (; i + 4 * n_lanes <= args_.n; i += 4 * n_lanes) four_vectors<false>(i);
      for (; i + n_lanes <= args_.n; i += n_lanes) one_vector(i);
    }
    elements(i, args_.n);
  }

 private:
  using D = hn::ScalableTag<Accumulator<T>>;
  static constexpr size_t kLineBytes = 64;

  const T* src(size_t s, size_t i) const { return static_cast<const T*>(args_.srcs[s]) + i; }

  bool same_alignment() const {
    const auto line_offset = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % kLineBytes; };
    for (const void* dst : args_.dsts) {
      if (line_offset(dst) != line_offset(args_.dsts[0])) return false;
    }
    return std::is_same_v<T, Accumulator<T>> && line_offset(args_.dsts[0]) % sizeof(T) == 0;
  }
  size_t misaligned_elements() const {
    const size_t offset = reinterpret_cast<uintptr_t>(args_.dsts[0]) % kLineBytes;
    return std::min(args_.n, (kLineBytes - offset) % kLineBytes / sizeof(T));
  }

  /// Elements [begin, end) one by one; returns end.
  size_t elements(size_t begin, size_t end) const {
    for (size_t i = begin; i < end; ++i) {
      Accumulator<T> sum = widen(*src(0, i));
      for (size_t s = 1; s < args_.srcs.size(); ++s) sum = apply<op>(sum, widen(*src(s, i)));
      for (void* dst : args_.dsts) static_cast<T*>(dst)[i] = narrow<T>(sum);
    }
    return end;
  }

  HWY_INLINE void one_vector(size_t i) const {
    auto sum = load_elements(d_, src(0, i));
    for (size_t s = 1; s < args_.srcs.size(); ++s) sum = combine<op>(d_, sum, load_elements(d_, src(s, i)));
    for (void* dst : args_.dsts) store_elements(sum, d_, static_cast<T*>(dst) + i);
  }

  template <bool stream>
  HWY_INLINE void store(hn::VFromD<D> v, T* to) const {
    if constexpr (stream && std::is_same_v<T, Accumulator<T>>)
      hn::Stream(v, d_, to);
    else
      store_elements(v, d_, to);
  }

  template <bool stream>
  HWY_INLINE void four_vectors(size_t i) const {
    const size_t n_lanes = hn::Lanes(d_);
    const T* p = src(0, i);
    auto sum0 = load_elements(d_, p);
    auto sum1 = load_elements(d_, p + n_lanes);
    auto sum2 = load_elements(d_, p + 2 * n_lanes);
    auto sum3 = load_elements(d_, p + 3 * n_lanes);
    for (size_t s = 1; s < args_.srcs.size(); ++s) {
      p = src(s, i);
      sum0 = combine<op>(d_, sum0, load_elements(d_, p));
      sum1 = combine<op>(d_, sum1, load_elements(d_, p + n_lanes));
      sum2 = combine<op>(d_, sum2, load_elements(d_, p + 2 * n_lanes));
      sum3 = combine<op>(d_, sum3, load_elements(d_, p + 3 * n_lanes));
    }
    for (void* dst : args_.dsts) {
      T* to = static_cast<T*>(dst) + i;
      store<stream>(sum0, to);
      store<stream>(sum1, to + n_lanes);
      store<stream>(sum2, to + 2 * n_lanes);
      store<stream>(sum3, to + 3 * n_lanes);
    }
  }

  D d_;
  const ReduceArgs& args_;
};

template <class T>
void reduce_of(const ReduceArgs& args) {
  switch (args.op) {
    case Op::kSum:
    case Op::kAvg:
    case Op::kPremulSum:
      return Reducer<T, Op::kSum>(args).run();
    case Op::kProd:
      return Reducer<T, Op::kProd>(args).run();
    case Op::kMin:
      return Reducer<T, Op::kMin>(args).run();
    case Op::kMax:
      return Reducer<T, Op::kMax>(args).run();
  }
}

void reduce_vectors(const ReduceArgs& args) {
  with_type(args.dtype, [&]<class T>(std::type_identity<T>) { reduce_of<T>(args); });
}

}  // namespace HWY_NAMESPACE
}  // namespace tern
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tern {

HWY_EXPORT(reduce_vectors);

void reduce_to_many(const ReduceArgs& args) {
  TERN_CHECK(!args.srcs.empty());
  if (args.n == 0 || args.dsts.empty()) return;
  HWY_DYNAMIC_DISPATCH(reduce_vectors)(args);
}

void reduce(Dtype dtype, Op op, void* dst, const Sources& sources) {
  reduce_to_many({.dtype = dtype,
                  .op = op,
                  .dsts = {&dst, 1},
                  .srcs = sources.srcs,
                  .n = sources.n,
                  .options = sources.options});
}

}  // namespace tern
#endif  // HWY_ONCE
