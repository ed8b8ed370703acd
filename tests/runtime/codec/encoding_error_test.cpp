#include "runtime/codec/encoding_error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernels/convert.h"

namespace tern {
namespace {

/// What decode_run() gives back of a whole message, as doubles.
std::vector<double> decoded(const EncodeArgs& args) {
  std::vector<float> out(args.in.n);
  info(args.spec.id).decode_run({args.spec, args.wire, args.in.n, 0, out, Decode::kSet});
  return {out.begin(), out.end()};
}

TEST(EncodingError, IsTheSquaredDifferenceToWhatWasEncoded) {
  constexpr size_t kN = 10'001;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> in(kN);
  for (float& x : in) x = normal(random);
  for (const CodecInfo& codec : codecs()) {
    for (const bool has_residual : {false, true}) {
      if (has_residual && codec.residual == ResidualUse::kNone) continue;
      if (!has_residual && codec.residual == ResidualUse::kMandatory) continue;
      SCOPED_TRACE(fmt::format("{} residual {}", codec.name, has_residual));
      std::vector<float> residual(kN);
      for (float& x : residual) x = 0.1F * normal(random);
      const std::vector<float> before = residual;
      const CodecSpec spec{.id = codec.id};
      std::vector<std::byte> wire(codec.wire_bytes(spec, Dtype::kFloat32, kN));
      const EncodeArgs args{.in = {in.data(), kN, Dtype::kFloat32},
                            .residual = has_residual ? residual.data() : nullptr,
                            .wire = wire.data(),
                            .spec = spec};
      codec.encode(args);
      const std::vector<double> out = decoded(args);
      double lost = 0;
      double value = 0;
      for (size_t i = 0; i < kN; ++i) {
        const double x = static_cast<double>(in[i]) + (has_residual ? static_cast<double>(before[i]) : 0.0);
        lost += (out[i] - x) * (out[i] - x);
        value += x * x;
      }
      const EncodingError error = encoding_error(args);
      EXPECT_NEAR(error.value, value, 1e-4 * value);
      EXPECT_NEAR(error.lost, lost, 1e-3 * lost + 1e-9);
      EXPECT_NEAR(error.vnmse(), lost / value, 1e-3 * lost / value + 1e-12);
    }
  }
}

TEST(EncodingError, LeavesOutWhatIsNotFiniteAndReadsShortFloats) {
  constexpr size_t kN = 300;
  std::vector<float> in(kN, 1.5F);
  in[5] = std::numeric_limits<float>::infinity();  // makes its whole block NaN
  const CodecSpec q8{.id = CodecId::kQ8};
  std::vector<std::byte> wire(info(q8.id).wire_bytes(q8, Dtype::kFloat32, kN));
  EncodeArgs args{.in = {in.data(), kN, Dtype::kFloat32}, .wire = wire.data(), .spec = q8};
  info(q8.id).encode(args);
  const EncodingError error = encoding_error(args);
  EXPECT_TRUE(std::isfinite(error.vnmse()));
  EXPECT_NEAR(error.value, (kN - 128) * 1.5 * 1.5, 1);

  const std::vector<Bfloat16> shorts(kN, to_bfloat16(1.5F));
  args.in = {shorts.data(), kN, Dtype::kBfloat16};
  info(q8.id).encode(args);
  EXPECT_NEAR(encoding_error(args).value, kN * 1.5 * 1.5, 1);
  EXPECT_EQ(EncodingError{}.vnmse(), 0);
}

}  // namespace
}  // namespace tern
