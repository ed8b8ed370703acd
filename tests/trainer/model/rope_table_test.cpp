#include "trainer/model/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tern::trainer {
namespace {

TEST(RopeTableTest, FrequenciesFallGeometricallyFromOne) {
  const LlamaConfig config{.head_dim = 8, .rope_theta = 10000.0};
  const auto frequencies = rope_frequencies(config);
  ASSERT_EQ(frequencies.size(), 4U);
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(frequencies[static_cast<size_t>(i)], std::pow(10.0, -i), 1e-15);
}

TEST(RopeTableTest, LinearScalingDividesEveryFrequency) {
  LlamaConfig config{.head_dim = 8};
  const auto plain = rope_frequencies(config);
  config.rope_scaling = {.kind = RopeScaling::Kind::kLinear, .factor = 4.0};
  const auto scaled = rope_frequencies(config);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_DOUBLE_EQ(scaled[i], plain[i] / 4.0);
}

TEST(RopeTableTest, Llama3ScalingKeepsShortWavesStretchesLongOnesAndJoinsThem) {
  LlamaConfig config{.head_dim = 128, .rope_theta = 500000.0};
  const auto plain = rope_frequencies(config);
  config.rope_scaling = {.kind = RopeScaling::Kind::kLlama3, .factor = 8.0};
  const auto scaled = rope_frequencies(config);
  EXPECT_EQ(scaled.front(), plain.front());
  EXPECT_DOUBLE_EQ(scaled.back(), plain.back() / 8.0);
  for (size_t i = 1; i < scaled.size(); ++i) {
    EXPECT_LT(scaled[i], scaled[i - 1]);
    EXPECT_LE(scaled[i], plain[i]);
    EXPECT_GE(scaled[i], plain[i] / 8.0);
  }
}

TEST(RopeTableTest, TablesHoldCosineAndSineOfPositionTimesFrequency) {
  const LlamaConfig config{.head_dim = 6, .rope_theta = 100.0};
  const RopeTable<double> table(config, 5);
  const auto frequencies = rope_frequencies(config);
  ASSERT_EQ(table.cosines.size(), 15U);
  EXPECT_DOUBLE_EQ(table.cosines[4 * 3 + 1], std::cos(4 * frequencies[1]));
  EXPECT_DOUBLE_EQ(table.sines[4 * 3 + 1], std::sin(4 * frequencies[1]));
}

}  // namespace
}  // namespace tern::trainer
