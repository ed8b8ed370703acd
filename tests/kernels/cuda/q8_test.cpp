// q8 on the GPU gives the bytes of the scalar reference, whatever the input.
#include <gtest/gtest.h>

#include "kernels/block_scalar.h"
#include "kernels/cuda/q8_body.cuh"
#include "tests/kernels/cuda/device.h"
#include "tests/kernels/gradients.h"
#include "tests/kernels/samples.h"

namespace tern::cuda {
namespace {

using test::bytes;

constexpr size_t kSizes[] = {0, 1, 5, 127, 128, 129, 511, 512, 513, 1000, 4097, 9000};

class Q8OnGpu : public test::OnEveryMachine {};
TERN_ON_EVERY_MACHINE(Q8OnGpu);

/// What an encoder made, one element further than any 16-byte address when `skip` is 1.
struct Encoded {
  Encoded(size_t n, size_t skip) : scales(Q8::kShape.scales(n) / sizeof(uint16_t) + skip), codes(n + skip) {}
  std::vector<uint16_t> scales;
  std::vector<uint8_t> codes;
  std::vector<float> residual;
  std::vector<uint32_t> n_non_finite = {0};
};

Encoded scalar_encoded(const std::vector<float>& in, const std::vector<float>& residual, size_t skip) {
  Encoded out(in.size() - skip, skip);
  out.residual = residual;
  out.n_non_finite[0] = static_cast<uint32_t>(
      scalar::encode_blocks<Q8>({.in = std::span(in).subspan(skip),
                                 .residual = residual.empty() ? nullptr : out.residual.data() + skip},
                                {bytes(out.scales.data() + skip), bytes(out.codes.data() + skip)})
          .n_non_finite);
  return out;
}

Encoded encoded(const test::Machine& machine, const std::vector<float>& in,
                const std::vector<float>& residual, size_t skip) {
  Encoded out(in.size() - skip, skip);
  out.residual = residual;
  test::Device device(machine);
  Q8Encode args = {.in = device.input("in", in, skip), .n = in.size() - skip};
  if (!residual.empty()) args.residual = device.buffer("residual", out.residual, skip);
  args.out = {.scales = bytes(device.buffer("scales", out.scales, skip)),
              .codes = bytes(device.buffer("codes", out.codes, skip))};
  args.n_non_finite = device.buffer("n_non_finite", out.n_non_finite);
  const Status status = device.run(args);
  EXPECT_TRUE(status.ok()) << status.error().message;
  return out;
}

TEST_P(Q8OnGpu, EncodesToTheBytesOfTheScalarReference) {
  for (const tern::test::GradientKind& kind : tern::test::kGradientKinds) {
    for (const size_t n : kSizes) {
      for (const size_t skip : {0, 1}) {
        for (const bool with_residual : {false, true}) {
          const auto in = tern::test::gradient(kind, n + skip, 7);
          std::vector<float> residual;
          if (with_residual) residual = tern::test::gradient(tern::test::kGradientKinds[0], n + skip, 11);
          const Encoded got = encoded(GetParam(), in, residual, skip);
          const Encoded want = scalar_encoded(in, residual, skip);
          const auto what = fmt::format("{} n={} skip={} residual={}", kind.name, n, skip, with_residual);
          ASSERT_EQ(got.scales, want.scales) << what;
          ASSERT_EQ(got.codes, want.codes) << what;
          ASSERT_EQ(got.n_non_finite, want.n_non_finite) << what;
          ASSERT_TRUE(test::same_bits(got.residual, want.residual)) << what;
        }
      }
    }
  }
}

TEST_P(Q8OnGpu, DecodesLikeTheScalarReference) {
  for (const tern::test::GradientKind& kind : tern::test::kGradientKinds) {
    for (const size_t n : kSizes) {
      for (const size_t skip : {0, 1}) {
        const Encoded in = scalar_encoded(tern::test::gradient(kind, n + skip, 3), {}, skip);
        const BlockView view = {bytes(in.scales.data() + skip), bytes(in.codes.data() + skip)};
        for (const bool accumulate : {false, true}) {
          std::vector<float> want(n + skip, 1.5F), got = want;
          const auto want_span = std::span(want).subspan(skip);
          scalar::decode_blocks<Q8>(view, want_span, accumulate ? Decode::kAdd : Decode::kSet);
          test::Device device(GetParam());
          const Status status = device.run(Q8Decode{.in = {bytes(device.input("scales", in.scales, skip)),
                                                           bytes(device.input("codes", in.codes, skip))},
                                                    .out = device.buffer("out", got, skip),
                                                    .n = n,
                                                    .accumulate = accumulate});
          ASSERT_TRUE(status.ok()) << status.error().message;
          for (size_t i = 0; i < got.size(); ++i) {
            ASSERT_TRUE(tern::test::same_element(got[i], want[i]))
                << kind.name << " n=" << n << " skip=" << skip << " accumulate=" << accumulate << " element "
                << i;
          }
        }
      }
    }
  }
}

TEST(Q8Launch, RefusesMisalignedPointersAndSaysWhyItCannotRun) {
  alignas(4) std::byte odd[16] = {};
  Q8Encode args = {.in = reinterpret_cast<const float*>(odd + 1), .n = 1, .out = {odd, odd}};
  const Status misaligned = launch(nullptr, args);
  ASSERT_FALSE(misaligned.ok());
  EXPECT_EQ(why_not().empty() ? Code::kInvalidArgument : misaligned.error().code, misaligned.error().code);
  if (why_not().empty()) return;
  args.in = nullptr;
  const Status no_gpu = launch(nullptr, args);
  ASSERT_FALSE(no_gpu.ok());
  EXPECT_EQ(no_gpu.error().code, Code::kUnsupported) << no_gpu.error().message;
}

}  // namespace
}  // namespace tern::cuda
