#include "runtime/codec/decode.h"

#include <algorithm>
#include <array>

#include "kernels/convert.h"
#include "kernels/copy.h"
#include "kernels/reduce.h"
#include "runtime/codec/runs.h"

namespace tern {
namespace {

using Run = std::array<float, kRunGrain>;

/// Adds up one run after the other.
class Summer {
 public:
  Summer(const CodecSpec& spec, std::span<const Share> shares, View out)
      : spec_(spec), codec_(info(spec.id)), shares_(shares), out_(out), in_place_(sums_in_place()) {}

  void run() {
    for (size_t begin = 0; begin < out_.n; begin += kRunGrain) {
      const size_t n = std::min(kRunGrain, out_.n - begin);
      std::byte* const at = static_cast<std::byte*>(out_.data) + begin * size_of(out_.dtype);
      const std::span<float> sum(in_place_ ? reinterpret_cast<float*>(at) : sum_.data(), n);
      Decode how = Decode::kSet;
      for (const Share& share : shares_) {
        if (share.wire != nullptr) {
          codec_.decode_run({spec_, share.wire, out_.n, begin, sum, how});
        } else {
          take_elements(share, begin, sum, how);
        }
        how = Decode::kAdd;
      }
      if (!in_place_) narrow_run(sum, {at, n, out_.dtype});
    }
  }

 private:
  /// Whether `out` itself can hold the sum while it grows: fp32, and nobody reads it late.
  bool sums_in_place() const {
    return out_.dtype == Dtype::kFloat32 &&
           std::none_of(shares_.begin() + 1, shares_.end(),
                        [](const Share& share) { return share.wire == nullptr; });
  }

  void take_elements(const Share& share, size_t begin, std::span<float> sum, Decode how) {
    const size_t elt = size_of(out_.dtype);
    const void* from = static_cast<const std::byte*>(share.elements) + begin * elt;
    if (how == Decode::kSet) {
      if (from != sum.data()) widen_run({from, sum.size(), out_.dtype}, sum);
      return;
    }
    if (out_.dtype != Dtype::kFloat32) {
      widen_run({from, sum.size(), out_.dtype}, {widened_.data(), sum.size()});
      from = widened_.data();
    }
    const void* const srcs[] = {sum.data(), from};
    reduce(Dtype::kFloat32, Op::kSum, sum.data(), {srcs, sum.size()});
  }

  const CodecSpec spec_;
  const CodecInfo& codec_;
  const std::span<const Share> shares_;
  const View out_;
  const bool in_place_;
  alignas(64) Run sum_;
  alignas(64) Run widened_;
};

}  // namespace

void widen_run(const ConstView& in, std::span<float> out) {
  switch (in.dtype) {
    case Dtype::kBfloat16:
      return convert({static_cast<const Bfloat16*>(in.data), in.n}, out);
    case Dtype::kFloat16:
      return convert({static_cast<const Float16*>(in.data), in.n}, out);
    default:
      TERN_CHECK(in.dtype == Dtype::kFloat32);
      copy(out.data(), in.data, in.n_bytes());
  }
}

void narrow_run(std::span<const float> in, View out) {
  switch (out.dtype) {
    case Dtype::kBfloat16:
      return convert(in, std::span(static_cast<Bfloat16*>(out.data), out.n));
    case Dtype::kFloat16:
      return convert(in, std::span(static_cast<Float16*>(out.data), out.n));
    default:
      TERN_CHECK(out.dtype == Dtype::kFloat32);
      copy(out.data, in.data(), out.n_bytes());
  }
}

void decode(const CodecSpec& spec, const std::byte* wire, View out) {
  const CodecInfo& codec = info(spec.id);
  if (codec.decode_exactly != nullptr) return codec.decode_exactly(spec, wire, out);
  if (out.dtype == Dtype::kFloat32)
    return codec.decode_run(
        {.spec = spec, .wire = wire, .n = out.n, .out = {static_cast<float*>(out.data), out.n}});
  const Share share{.wire = wire};
  decode_sum(spec, {&share, 1}, out);
}

void decode_sum(const CodecSpec& spec, std::span<const Share> shares, View out) {
  TERN_CHECK(!shares.empty());
  Summer(spec, shares, out).run();
}

}  // namespace tern
