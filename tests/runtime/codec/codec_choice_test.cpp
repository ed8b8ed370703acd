#include "runtime/codec/codec_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tern {
namespace {

using ::testing::HasSubstr;

TEST(CodecChoice, TextGivesBackTheChoice) {
  for (const char* text : {"none", "q8", "topk:k=64", "auto", "auto:max_loss_gap=0.3",
                           "auto:max_loss_gap=100", "auto:max_loss_gap=1e-3"}) {
    const auto choice = parse_codec_choice(text);
    ASSERT_TRUE(choice.ok()) << choice.error().message;
    const auto again = parse_codec_choice(to_string(*choice));
    ASSERT_TRUE(again.ok()) << to_string(*choice);
    EXPECT_EQ(*again, *choice) << text;
  }
  EXPECT_TRUE(parse_codec_choice("auto")->is_automatic);
  EXPECT_EQ(parse_codec_choice("auto:max_loss_gap=0.3")->max_loss_gap, 0.3);
  EXPECT_TRUE(parse_codec_choice("none")->is_dense());
  EXPECT_FALSE(parse_codec_choice("auto")->is_dense());
}

TEST(CodecChoice, WrongTextIsOneSentence) {
  const std::pair<const char*, const char*> cases[] = {
      {"autp", "or auto"},
      {"auto:", "max_loss_gap=PERCENT"},
      {"auto:max_loss_gap=", "0..100"},
      {"auto:max_loss_gap=-1", "0..100"},
      {"auto:max_loss_gap=101", "0..100"},
      {"auto:max_loss_gap=nan", "0..100"},
      {"auto:max_loss_gap=1x", "1x"},
      {"auto:k=32", "k=32"},
      {"topk:k=31", "k = \"31\""}};
  for (const auto& [text, says] : cases) {
    const auto choice = parse_codec_choice(text);
    ASSERT_FALSE(choice.ok()) << text;
    EXPECT_EQ(choice.error().code, Code::kInvalidArgument);
    EXPECT_THAT(choice.error().message, HasSubstr(says)) << text;
  }
}

bool allows(std::span<const CodecSpec> allowed, CodecId id) {
  return std::any_of(allowed.begin(), allowed.end(), [id](const CodecSpec& spec) { return spec.id == id; });
}

TEST(AllowedCodecs, AreThoseWhoseLossIsAllowedAndThatSaveBytes) {
  for (const bool has_residual : {false, true})
    for (const double most : {0.0, 0.05, 0.3, 1.0, 100.0})
      for (const size_t elt : {size_t{2}, size_t{4}}) {
        const std::vector<CodecSpec> allowed = allowed_codecs(most, has_residual, elt);
        for (const CodecInfo& row : codecs()) {
          const bool biased = row.residual == ResidualUse::kMandatory;
          const bool is_in = allows(allowed, row.id);
          SCOPED_TRACE(fmt::format("{} residual {} most {} elt {}", row.name, has_residual, most, elt));
          const bool saves = row.bits_per_element({.id = row.id}, elt) < 8.0 * static_cast<double>(elt);
          EXPECT_FALSE(is_in && biased && !has_residual);
          EXPECT_FALSE(is_in && !saves);
        }
        EXPECT_TRUE(allows(allowed, CodecId::kQ8));
        EXPECT_FALSE(allows(allowed, CodecId::kNone));
        EXPECT_EQ(allows(allowed, CodecId::kBf16), elt == 4);
        EXPECT_EQ(allows(allowed, CodecId::kQ5), most >= 0.05);
        EXPECT_EQ(allows(allowed, CodecId::kQ4h), has_residual && most >= 0.3);
        EXPECT_EQ(allows(allowed, CodecId::kTopk), has_residual && most >= 1);
      }
}

}  // namespace
}  // namespace tern
