// Block formats on the GPU give the bytes of their scalar references, whatever the input.
#include <gtest/gtest.h>

#include "kernels/block_scalar.h"
#include "kernels/cuda/block_body.cuh"
#include "kernels/cuda/q4h_body.cuh"
#include "kernels/cuda/sign1_body.cuh"
#include "tests/kernels/cuda/device.h"
#include "tests/kernels/gradients.h"
#include "tests/kernels/samples.h"

namespace tern::cuda {
namespace {

using test::bytes;

constexpr size_t kSizes[] = {0, 1, 33, 129, 512, 1023, 4097};

class BlockFormats : public test::OnEveryMachine {};
TERN_ON_EVERY_MACHINE(BlockFormats);

/// The kernels of a format and their reference.
template <class Format>
struct Kernels {
  using EncodeArgs = BlockEncode<Format>;
  using DecodeArgs = BlockDecode<Format>;
  static constexpr BlockShape kShape = Format::kShape;
  static BlockCounts encode(const BlockInput& run, BlockPlanes out) {
    return scalar::encode_blocks<Format>(run, out);
  }
  static void decode(BlockView in, std::span<float> out, Decode how, const ElementRandom& /*random*/) {
    scalar::decode_blocks<Format>(in, out, how);
  }
};
template <>
struct Kernels<Q4h> {
  using EncodeArgs = Q4hEncode;
  using DecodeArgs = Q4hDecode;
  static constexpr BlockShape kShape = Q4h::kShape;
  static constexpr auto encode = scalar::q4h_encode;
  static constexpr auto decode = scalar::q4h_decode;
};
struct Sign1 {};
template <>
struct Kernels<Sign1> {
  using EncodeArgs = Sign1Encode;
  using DecodeArgs = Sign1Decode;
  static constexpr BlockShape kShape = kSign1Shape;
  static constexpr auto encode = scalar::sign1_encode;
  static void decode(BlockView in, std::span<float> out, Decode how, const ElementRandom& /*random*/) {
    scalar::sign1_decode(in, out, how);
  }
};

/// Calls f(Kernels<Format>(), name) for every format.
template <class F>
void for_every_format(F f) {
#define ROW(Format, format_name) f(Kernels<Format>(), format_name);
#include "kernels/cuda/block_formats.def"
  ROW(Q4h, "q4h")
  ROW(Sign1, "sign1")
#undef ROW
}

/// What is encoded. Buffers start at a multiple of 16 bytes, or one element further when `skip` is 1.
struct Case {
  const tern::test::GradientKind& kind;
  size_t n;
  bool with_residual = false;
  size_t skip = n % 2;
  bool stochastic = false;
  ElementRandom random = {.step = static_cast<uint32_t>(n), .first = n * 128};
  std::string text(const char* format) const {
    return fmt::format("{} {} n={} residual={} skip={} stochastic={} first={}", format, kind.name, n,
                       with_residual, skip, stochastic, random.first);
  }
};

struct Encoded {
  Encoded(const BlockShape& shape, const Case& c)
      : scales((shape.scales(c.n) + 1) / 2 + c.skip),
        codes((shape.codes(c.n) + 1) / 2 + c.skip),
        high(shape.high(c.n) + c.skip) {
    if (c.with_residual) residual = tern::test::gradient(tern::test::kGradientKinds[0], c.n + c.skip, 11);
  }
  std::vector<uint16_t> scales, codes;
  std::vector<uint8_t> high;
  std::vector<float> residual;
  std::vector<uint32_t> n_non_finite = {0}, n_saturated = {0};
};

template <class K>
Encoded scalar_encoded(K /*kernels*/, const Case& c, const std::vector<float>& in) {
  Encoded out(K::kShape, c);
  const BlockInput run = {.in = std::span(in).subspan(c.skip),
                          .residual = c.with_residual ? out.residual.data() + c.skip : nullptr,
                          .stochastic = c.stochastic,
                          .random = c.random};
  const BlockCounts counts = K::encode(
      run,
      {bytes(out.scales.data() + c.skip), bytes(out.codes.data() + c.skip), bytes(out.high.data() + c.skip)});
  out.n_non_finite[0] = static_cast<uint32_t>(counts.n_non_finite);
  out.n_saturated[0] = static_cast<uint32_t>(counts.n_saturated);
  return out;
}

template <class K, class T>
Encoded encoded(K /*kernels*/, const test::Machine& machine, const Case& c, const std::vector<T>& in) {
  Encoded out(K::kShape, c);
  test::Device device(machine);
  typename K::EncodeArgs args;
  args.in = device.input("in", in, c.skip);
  args.n = c.n;
  if (c.with_residual) args.residual = device.buffer("residual", out.residual, c.skip);
  args.out = {.scales = bytes(device.buffer("scales", out.scales, c.skip)),
              .codes = bytes(device.buffer("codes", out.codes, c.skip)),
              .high = bytes(device.buffer("high", out.high, c.skip))};
  args.n_non_finite = device.buffer("n_non_finite", out.n_non_finite);
  if constexpr (requires { args.n_saturated; })
    args.n_saturated = device.buffer("n_saturated", out.n_saturated);
  if constexpr (requires { args.stochastic; }) args.stochastic = c.stochastic;
  if constexpr (requires { args.random; }) args.random = c.random;
  const Status status = device.run(args);
  EXPECT_TRUE(status.ok()) << status.error().message;
  return out;
}

void expect_same(const Encoded& got, const Encoded& want, const std::string& what) {
  ASSERT_EQ(got.scales, want.scales) << what;
  ASSERT_EQ(got.codes, want.codes) << what;
  ASSERT_EQ(got.high, want.high) << what;
  ASSERT_EQ(got.n_non_finite, want.n_non_finite) << what;
  ASSERT_EQ(got.n_saturated, want.n_saturated) << what;
  ASSERT_TRUE(test::same_bits(got.residual, want.residual)) << what;
}

TEST_P(BlockFormats, EncodeToTheBytesOfTheScalarReference) {
  for_every_format([&](auto kernels, const char* name) {
    for (const tern::test::GradientKind& kind : tern::test::kGradientKinds) {
      for (const size_t n : kSizes) {
        for (const bool with_residual : {false, true}) {
          const Case c = {.kind = kind, .n = n, .with_residual = with_residual};
          const auto in = tern::test::gradient(kind, n + c.skip, 7);
          expect_same(encoded(kernels, GetParam(), c, in), scalar_encoded(kernels, c, in), c.text(name));
        }
      }
    }
  });
}

TEST_P(BlockFormats, RoundStochasticallyWithTheNumbersOfTheElements) {
  for_every_format([&](auto kernels, const char* name) {
    for (const size_t n : kSizes) {
      for (const uint64_t first : {0, 129, 130, 131}) {
        const Case c = {.kind = tern::test::kGradientKinds[n % 2],
                        .n = n,
                        .with_residual = first % 2 == 0,
                        .stochastic = true,
                        .random = {.step = 9, .first = first}};
        const auto in = tern::test::gradient(c.kind, n + c.skip, 7);
        expect_same(encoded(kernels, GetParam(), c, in), scalar_encoded(kernels, c, in), c.text(name));
      }
    }
  });
}

template <class T, class K>
void expect_takes(K kernels, const test::Machine& machine, const Case& c, const char* name) {
  std::vector<T> in;
  std::vector<float> wide;
  for (const float x : tern::test::gradient(c.kind, c.n + c.skip, 5)) {
    in.push_back(narrow<T>(x));
    wide.push_back(to_float(in.back()));
  }
  expect_same(encoded(kernels, machine, c, in), scalar_encoded(kernels, c, wide), c.text(name));
}

TEST_P(BlockFormats, TakeBf16AndFp16AsTheNumbersThatTheyAre) {
  for_every_format([&](auto kernels, const char* name) {
    for (const size_t n : kSizes) {
      const Case c = {.kind = tern::test::kGradientKinds[1], .n = n, .with_residual = true};
      expect_takes<Bfloat16>(kernels, GetParam(), c, name);
      expect_takes<Float16>(kernels, GetParam(), c, name);
    }
  });
}

template <class K>
void expect_decodes(K kernels, const test::Machine& machine, const Case& c, const char* name) {
  const Encoded in = scalar_encoded(kernels, c, tern::test::gradient(c.kind, c.n + c.skip, 3));
  const BlockView view = {bytes(in.scales.data() + c.skip), bytes(in.codes.data() + c.skip),
                          bytes(in.high.data() + c.skip)};
  for (const Decode how : {Decode::kSet, Decode::kAdd}) {
    std::vector<float> want(c.n + c.skip, 1.5F), got = want;
    K::decode(view, std::span(want).subspan(c.skip), how, c.random);
    test::Device device(machine);
    typename K::DecodeArgs args;
    args.in = {.scales = bytes(device.input("scales", in.scales, c.skip)),
               .codes = bytes(device.input("codes", in.codes, c.skip)),
               .high = bytes(device.input("high", in.high, c.skip))};
    args.out = device.buffer("out", got, c.skip);
    args.n = c.n;
    args.how = how;
    if constexpr (requires { args.random; }) args.random = c.random;
    const Status status = device.run(args);
    ASSERT_TRUE(status.ok()) << status.error().message;
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(tern::test::same_element(got[i], want[i]))
          << c.text(name) << " adds=" << (how == Decode::kAdd) << " element " << i;
    }
  }
}

TEST_P(BlockFormats, DecodeLikeTheScalarReference) {
  for_every_format([&](auto kernels, const char* name) {
    for (const tern::test::GradientKind& kind : tern::test::kGradientKinds) {
      for (const size_t n : kSizes) expect_decodes(kernels, GetParam(), {.kind = kind, .n = n}, name);
    }
  });
}

TEST(BlockFormatsLaunch, RefuseWhatTheirArgumentsSayIsWrong) {
  alignas(4) std::byte data[16] = {};
  BlockEncode<Q8> args = {.in = reinterpret_cast<const float*>(data + 1), .n = 1, .out = {data, data}};
  EXPECT_STREQ(args.wrong(), kMisaligned);
  args.in.dtype = Dtype::kInt8;
  EXPECT_STREQ(args.wrong(), kNotEncodable);
  args.in = reinterpret_cast<const float*>(data);
  EXPECT_EQ(args.wrong(), nullptr);
  if (why_not().empty()) return;
  const Status status = launch(nullptr, args);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kUnsupported) << status.error().message;
}

}  // namespace
}  // namespace tern::cuda
