#include "runtime/codec/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/codec/encoded.h"

namespace tern {
namespace {

using testing::HasSubstr;

TEST(CodecRegistry, IsInTheOrderOfTheIdsAndNamesAreUnique) {
  for (size_t i = 0; i < codecs().size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(codecs()[i].id), i);
    for (size_t j = 0; j < i; ++j) EXPECT_NE(codecs()[i].name, codecs()[j].name);
  }
}

TEST(ParseCodec, ReadsWhatToStringWrites) {
  for (const CodecSpec& spec : test::all_specs()) {
    const auto parsed = parse_codec(to_string(spec));
    ASSERT_TRUE(parsed.ok()) << to_string(spec);
    EXPECT_EQ(*parsed, spec);
  }
  EXPECT_EQ(to_string({.id = CodecId::kTopk, .k = 64}), "topk:k=64");
  EXPECT_EQ(to_string({.id = CodecId::kQ8}), "q8");
  EXPECT_EQ(to_string({.id = CodecId::kQ8, .rounding = 1}), "q8:rounding=stochastic");
  EXPECT_EQ(to_string({.id = CodecId::kFp8, .format = 1}), "fp8:format=e5m2");
  EXPECT_EQ(parse_codec("q8:rounding=nearest")->rounding, 0);
}

TEST(ParseCodec, NamesWhatIsWrongAndWhatIsAllowed) {
  struct Case {
    std::string_view text;
    std::vector<std::string> says;
  };
  const Case cases[] = {
      {"", {"unknown codec \"\"", "none, bf16, q8, topk, fp16"}},
      {"q9", {"unknown codec \"q9\"", "none, bf16, q8, topk, fp16"}},
      {"bf16:k=3", {"codec bf16", "\"k=3\"", "no options"}},
      {"q8:k=3", {"codec q8", "\"k=3\"", "options: rounding (nearest, stochastic)"}},
      {"q8:rounding=up", {"rounding = \"up\" is not allowed", "nearest, stochastic"}},
      {"q8:rounding=1", {"rounding = \"1\" is not allowed"}},
      {"q8:", {"codec q8", "\"\""}},
      {"topk:", {"codec topk", "options: k (16, 32, 64, 128)"}},
      {"topk:k", {"codec topk", "\"k\"", "key=value"}},
      {"topk:depth=3", {"\"depth=3\"", "options: k (16, 32, 64, 128)"}},
      {"topk:k=33", {"k = \"33\" is not allowed", "16, 32, 64, 128"}},
      {"topk:k=", {"k = \"\" is not allowed"}},
      {"topk:k=32x", {"k = \"32x\" is not allowed"}},
      {"topk:k=99999999999999999999", {"is not allowed"}},
      {"topk:k=32,", {"\"\""}},
      {"topk:k=32,n=1", {"\"n=1\""}},
  };
  for (const Case& c : cases) {
    const auto parsed = parse_codec(c.text);
    ASSERT_FALSE(parsed.ok()) << c.text;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument);
    for (const std::string& part : c.says) EXPECT_THAT(parsed.error().message, HasSubstr(part)) << c.text;
  }
}

TEST(Residual, IsNeededByBiasedCodecsAndRefusedWithStochasticRoundingBelowFourBits) {
  for (const CodecSpec& spec : test::all_specs()) {
    const bool needs = info(spec.id).residual == ResidualUse::kMandatory;
    EXPECT_EQ(check_residual(spec, false).ok(), !needs) << to_string(spec);
    const bool refuses = spec == CodecSpec{.id = CodecId::kQ4h, .rounding = 1};
    EXPECT_EQ(check_residual(spec, true).ok(), !refuses) << to_string(spec);
  }
}

TEST(WireBytes, AreWithinTwoPercentOfTheStatedBitsPerElementFromOneMebibyteOn) {
  for (const CodecSpec& spec : test::all_specs()) {
    const CodecInfo& row = info(spec.id);
    for (size_t n = (size_t{1} << 20) / sizeof(float); n < (size_t{1} << 26); n = n * 3 + 1) {
      const double stated = row.bits_per_element(spec, sizeof(float)) * static_cast<double>(n) / 8;
      const auto real = static_cast<double>(row.wire_bytes(spec, Dtype::kFloat32, n));
      EXPECT_NEAR(real / stated, 1.0, 0.02) << to_string(spec) << " n=" << n;
    }
  }
}

TEST(WireBytes, AreTheHeaderForNoElementsAndGrowInSteps) {
  for (const CodecSpec& spec : test::all_specs()) {
    const CodecInfo& row = info(spec.id);
    EXPECT_EQ(row.wire_bytes(spec, Dtype::kFloat32, 0), sizeof(WireHeader)) << to_string(spec);
    for (size_t n = 0; n < 9000; ++n) {
      EXPECT_LE(row.wire_bytes(spec, Dtype::kFloat32, n), row.wire_bytes(spec, Dtype::kFloat32, n + 1))
          << to_string(spec) << " n=" << n;
      EXPECT_EQ(row.wire_bytes(spec, Dtype::kFloat32, n) % kPlaneAlignment, 0U)
          << to_string(spec) << " n=" << n;
    }
  }
}

TEST(BitsPerElement, AreThoseOfTheFormats) {
  EXPECT_EQ(info(CodecId::kNone).bits_per_element({}, 4), 32);
  EXPECT_EQ(info(CodecId::kNone).bits_per_element({}, 2), 16);
  EXPECT_EQ(info(CodecId::kBf16).bits_per_element({}, 4), 16);
  EXPECT_EQ(info(CodecId::kQ8).bits_per_element({}, 4), 8.125);
  EXPECT_EQ(info(CodecId::kFp16).bits_per_element({}, 4), 16.125);
  EXPECT_EQ(info(CodecId::kFp8).bits_per_element({}, 4), 8.125);
  EXPECT_EQ(info(CodecId::kMxfp8).bits_per_element({}, 4), 8.25);
  EXPECT_EQ(info(CodecId::kQ6).bits_per_element({}, 4), 6.5);
  EXPECT_EQ(info(CodecId::kQ5).bits_per_element({}, 4), 5.5);
  EXPECT_EQ(info(CodecId::kQ4h).bits_per_element({}, 4), 4.125);
  EXPECT_EQ(info(CodecId::kSign1).bits_per_element({}, 4), 1 + 16.0 / 2048 + 1.0 / 64);
  EXPECT_EQ(info(CodecId::kTopk).bits_per_element({.id = CodecId::kTopk, .k = 32}, 4), 0.16015625);
  EXPECT_EQ(info(CodecId::kTopk).bits_per_element({.id = CodecId::kTopk, .k = 128}, 4), 0.62890625);
}

TEST(Codecs, EveryRowIsWhole) {
  for (const CodecInfo& codec : codecs()) {
    EXPECT_EQ(&info(codec.id), &codec) << codec.name;
    EXPECT_GE(codec.block, 1U) << codec.name;
    EXPECT_NE(codec.bits_per_element, nullptr) << codec.name;
    EXPECT_NE(codec.max_error, nullptr) << codec.name;
    EXPECT_NE(codec.wire_bytes, nullptr) << codec.name;
    EXPECT_NE(codec.encode, nullptr) << codec.name;
    EXPECT_NE(codec.decode_run, nullptr) << codec.name;
    EXPECT_EQ(kRunGrain % codec.block, 0U) << codec.name;
  }
}

}  // namespace
}  // namespace tern
