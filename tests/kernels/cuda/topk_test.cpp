// topk on the GPU gives the bytes of the scalar reference, whatever the input.
#include <gtest/gtest.h>

#include "kernels/cuda/topk_body.cuh"
#include "kernels/scalar.h"
#include "tests/kernels/cuda/device.h"
#include "tests/kernels/gradients.h"
#include "tests/kernels/samples.h"

namespace tern::cuda {
namespace {

using test::bytes;

constexpr size_t kSizes[] = {0, 1, 33, 4095, 4096, 9000};

class Topk : public test::OnEveryMachine {};
TERN_ON_EVERY_MACHINE(Topk);

/// What an encoder made, one element further than any 16-byte address when `skip` is 1.
struct Encoded {
  Encoded(size_t n, int k, size_t skip)
      : indices(topk_index_bytes(n, k) + skip),
        values(topk_entries(n, k) + skip),
        scales(topk_blocks(n) + skip) {}
  std::vector<uint8_t> indices, values;
  std::vector<uint16_t> scales;
  std::vector<float> residual;
  std::vector<uint32_t> n_non_finite = {0};
};

Encoded scalar_encoded(const std::vector<float>& in, const std::vector<float>& residual, int k, size_t skip) {
  Encoded out(in.size() - skip, k, skip);
  out.residual = residual;
  out.n_non_finite[0] = static_cast<uint32_t>(scalar::topk_encode(
      std::span(in).subspan(skip), residual.empty() ? nullptr : out.residual.data() + skip, k,
      {bytes(out.indices.data() + skip), bytes(out.values.data() + skip), bytes(out.scales.data() + skip)}));
  return out;
}

template <class T>
Encoded encoded(const test::Machine& machine, const std::vector<T>& in, const std::vector<float>& residual,
                int k, size_t skip) {
  Encoded out(in.size() - skip, k, skip);
  out.residual = residual;
  test::Device device(machine);
  TopkEncode args = {.in = device.input("in", in, skip), .n = in.size() - skip, .k = k};
  if (!residual.empty()) args.residual = device.buffer("residual", out.residual, skip);
  args.out = {.indices = bytes(device.buffer("indices", out.indices, skip)),
              .values = bytes(device.buffer("values", out.values, skip)),
              .scales = bytes(device.buffer("scales", out.scales, skip))};
  args.n_non_finite = device.buffer("n_non_finite", out.n_non_finite);
  const Status status = device.run(args);
  EXPECT_TRUE(status.ok()) << status.error().message;
  return out;
}

TEST_P(Topk, EncodesToTheBytesOfTheScalarReference) {
  for (const tern::test::GradientKind& kind : tern::test::kGradientKinds) {
    for (const size_t n : kSizes) {
      for (const int k : kTopkChoices) {
        const size_t skip = n % 2;
        const auto in = tern::test::gradient(kind, n + skip, 7);
        std::vector<float> residual;
        if (k != 32) residual = tern::test::gradient(tern::test::kGradientKinds[0], n + skip, 11);
        const Encoded got = encoded(GetParam(), in, residual, k, skip);
        const Encoded want = scalar_encoded(in, residual, k, skip);
        const auto what = fmt::format("{} n={} k={} residual={}", kind.name, n, k, !residual.empty());
        ASSERT_EQ(got.scales, want.scales) << what;
        ASSERT_EQ(got.indices, want.indices) << what;
        ASSERT_EQ(got.values, want.values) << what;
        ASSERT_EQ(got.n_non_finite, want.n_non_finite) << what;
        ASSERT_TRUE(test::same_bits(got.residual, want.residual)) << what;
      }
    }
  }
}

TEST_P(Topk, TakesBf16AsTheNumbersThatTheyAre) {
  for (const size_t skip : {0, 1}) {
    std::vector<Bfloat16> in;
    std::vector<float> wide;
    for (const float x : tern::test::gradient(tern::test::kGradientKinds[1], 5000 + skip, 5)) {
      in.push_back(to_bfloat16(x));
      wide.push_back(to_float(in.back()));
    }
    const Encoded got = encoded(GetParam(), in, {}, 64, skip);
    const Encoded want = scalar_encoded(wide, {}, 64, skip);
    EXPECT_EQ(got.indices, want.indices) << "skip=" << skip;
    EXPECT_EQ(got.values, want.values) << "skip=" << skip;
    EXPECT_EQ(got.scales, want.scales) << "skip=" << skip;
  }
}

TEST_P(Topk, DecodesLikeTheScalarReference) {
  for (const tern::test::GradientKind& kind : tern::test::kGradientKinds) {
    for (const size_t n : kSizes) {
      for (const bool accumulate : {false, true}) {
        const size_t skip = n % 2;
        const int k = n % 3 == 0 ? 128 : 16;
        const Encoded in = scalar_encoded(tern::test::gradient(kind, n + skip, 3), {}, k, skip);
        const TopkView view = {bytes(in.indices.data() + skip), bytes(in.values.data() + skip),
                               bytes(in.scales.data() + skip)};
        std::vector<float> want(n + skip, 1.5F), got = want;
        const auto want_span = std::span(want).subspan(skip);
        accumulate ? scalar::topk_decode_accumulate(view, k, want_span)
                   : scalar::topk_decode(view, k, want_span);
        test::Device device(GetParam());
        const Status status = device.run(TopkDecode{.in = {bytes(device.input("indices", in.indices, skip)),
                                                           bytes(device.input("values", in.values, skip)),
                                                           bytes(device.input("scales", in.scales, skip))},
                                                    .out = device.buffer("out", got, skip),
                                                    .n = n,
                                                    .k = k,
                                                    .accumulate = accumulate});
        ASSERT_TRUE(status.ok()) << status.error().message;
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_TRUE(tern::test::same_element(got[i], want[i]))
              << kind.name << " n=" << n << " k=" << k << " accumulate=" << accumulate << " element " << i;
        }
      }
    }
  }
}

TEST_P(Topk, SkipsAnIndexBeyondTheLastBlock) {
  std::vector<uint8_t> indices(24, 0xFF);  // sixteen times 4095
  const std::vector<uint8_t> values(16, 1);
  const std::vector<uint16_t> scales = {0x3F80};  // 1.0
  std::vector<float> out(100, 2.0F);
  test::Device device(GetParam());
  const Status status = device.run(
      TopkDecode{.in = {bytes(device.input("indices", indices)), bytes(device.input("values", values)),
                        bytes(device.input("scales", scales))},
                 .out = device.buffer("out", out),
                 .n = out.size(),
                 .k = 16,
                 .accumulate = true});
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(out, std::vector<float>(100, 2.0F));
}

TEST(TopkLaunch, NamesTheChoicesOfK) {
  const Status status = launch(nullptr, TopkEncode{.k = 17});
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(!why_not().empty() || status.error().message == "topk_encode: k is none of 16, 32, 64, 128");
}

}  // namespace
}  // namespace tern::cuda
