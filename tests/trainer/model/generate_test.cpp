#include "trainer/model/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/trainer/model/reference_model.h"
#include "tests/trainer/model/small_models.h"

namespace tern::trainer {
namespace {

const SmallModel& model() {
  static const SmallModel small = small_models()[0];
  return small;
}

TEST(GenerateTest, ZeroTemperatureTakesTheLikeliestTokenOfTheWindow) {
  const auto in = random_inputs<float>(model(), 1);
  const std::vector<double> params(in.params.begin(), in.params.end());
  const ReferenceModel reference(model().config, params);
  const std::vector<int32_t> prompt = {3, 1, 4};
  const auto got =
      generate(model().config, in.params, prompt, {.n_tokens = 12, .temperature = 0, .window = 6});
  ASSERT_TRUE(got.ok());
  std::vector<int32_t> text = prompt;
  for (int i = 0; i < 12; ++i) {
    const size_t n = std::min<size_t>(text.size(), 6);
    const auto logits = reference.sequence(std::span(text).last(n)).back();
    text.push_back(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  EXPECT_EQ(*got, std::vector<int32_t>(text.begin() + 3, text.end()));
}

TEST(GenerateTest, TheSeedDecidesTheText) {
  const auto in = random_inputs<float>(model(), 1);
  const std::vector<int32_t> prompt = {1};
  const auto with_seed = [&](uint64_t seed) {
    return *generate(model().config, in.params, prompt,
                     {.n_tokens = 40, .temperature = 2.0, .seed = seed, .window = 16, .threads = 2});
  };
  EXPECT_EQ(with_seed(1), with_seed(1));
  EXPECT_NE(with_seed(1), with_seed(2));
}

TEST(GenerateTest, WhatCannotBeSampledIsNamed) {
  const auto in = random_inputs<float>(model(), 1);
  const auto message = [&](std::vector<int32_t> prompt, const SamplingOptions& options) {
    const auto result = generate(model().config, in.params, prompt, options);
    return result.ok() ? std::string("text") : result.error().message;
  };
  EXPECT_NE(message({}, {}).find("prompt is empty"), std::string::npos);
  EXPECT_NE(message({19}, {}).find("token 19"), std::string::npos);
  EXPECT_NE(message({1}, {.temperature = -1}).find("temperature -1"), std::string::npos);
  EXPECT_NE(message({1}, {.window = 129}).find("129"), std::string::npos);
}

}  // namespace
}  // namespace tern::trainer
