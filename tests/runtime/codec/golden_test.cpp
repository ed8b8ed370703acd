// Encoded bytes of every codec, option and element type, kept as files: a format does not change by accident,
// and other implementations can be compared with them.
//
// A file holds the message of golden_input(). One that is missing is written, and the test fails until it is
// looked at and kept.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "kernels/targets.h"
#include "tests/runtime/codec/encoded.h"

namespace tern {
namespace {

constexpr size_t kN = 700;
constexpr WireTag kTag = {.step = 3, .bucket = 1, .element_offset = 4096};

/// Numbers of several magnitudes, of integers alone, so that every machine makes the same.
std::vector<float> golden_input() {
  Philox random(2026);
  std::vector<float> in(kN);
  for (size_t i = 0; i < kN; ++i) {
    const auto x = static_cast<float>(static_cast<int32_t>(random.next()) >> 8);
    in[i] = std::ldexp(x, -30 + static_cast<int>(i % 5));
  }
  in[20] = 0;
  return in;
}

std::filesystem::path golden_file(const CodecSpec& spec, Dtype dtype) {
  std::string text = fmt::format("{}_{}.bin", to_string(spec), name(dtype));
  for (char& c : text)
    if (c == ':' || c == '=' || c == ',') c = '-';
  return std::filesystem::path(TERN_SOURCE_DIR) / "tests/runtime/codec/golden" / text;
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  std::vector<std::byte> out(bytes.size());
  std::transform(bytes.begin(), bytes.end(), out.begin(), [](char c) { return static_cast<std::byte>(c); });
  return out;
}

test::Message golden_message(const CodecSpec& spec, Dtype dtype) {
  std::vector<float> residual(kN, 0.0F);
  return test::encode(
      spec, golden_input(),
      {.residual = test::takes_residual(spec) && check_residual(spec, true).ok() ? &residual : nullptr,
       .tag = kTag,
       .checksum = true,
       .dtype = dtype});
}

TEST(GoldenMessages, AreWhatEveryInstructionSetWrites) {
  for (const CodecSpec& spec : test::all_specs()) {
    for (const Dtype dtype : test::kEncodable) {
      const auto path = golden_file(spec, dtype);
      if (!std::filesystem::exists(path)) {
        const auto message = golden_message(spec, dtype);
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(message.bytes.data()),
                   static_cast<std::streamsize>(message.bytes.size()));
        ADD_FAILURE() << path << " was missing; it was written, look at it and keep it";
        continue;
      }
      const auto golden = read_file(path);
      for (const std::string_view target : simd_targets()) {
        const OnlySimdTarget only(target);
        EXPECT_EQ(golden_message(spec, dtype).bytes, golden)
            << to_string(spec) << " " << name(dtype) << " " << target;
      }
    }
  }
}

TEST(GoldenMessages, AreAcceptedAndDecodeToTheirInputWithinTheCodecsError) {
  const auto in = golden_input();
  const float absmax = std::abs(
      *std::max_element(in.begin(), in.end(), [](float a, float b) { return std::abs(a) < std::abs(b); }));
  for (const CodecSpec& spec : test::all_specs()) {
    for (const Dtype dtype : test::kEncodable) {
      const auto golden = read_file(golden_file(spec, dtype));
      const Status status = check_header({golden.data(), golden.size(), 0}, {spec, kTag, dtype, kN});
      ASSERT_TRUE(status.ok()) << to_string(spec) << " " << name(dtype) << ": " << status.error().message;
      auto out = test::elements_of(std::vector<float>(kN, -77.0F), dtype);
      decode(spec, golden.data(), {out.data(), kN, dtype});
      const auto values = test::values_of(out, dtype);
      const double bound = info(spec.id).max_error(spec, absmax) + 0x1p-6 * absmax;
      for (size_t i = 0; i < kN; ++i)
        ASSERT_NEAR(values[i], in[i], bound) << to_string(spec) << " " << name(dtype) << " element " << i;
    }
  }
}

}  // namespace
}  // namespace tern
