#include "trainer/model/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/trainer/model/small_models.h"

namespace tern::trainer {
namespace {

TEST(ParametersTest, NamesAndShapesAreHuggingFaces) {
  const ParameterLayout layout(small_config(4, 2, 6, false));
  const auto expect = [&](const char* name, int rows, int cols) {
    const int idx = layout.find(name);
    ASSERT_GE(idx, 0) << name;
    EXPECT_EQ(layout[idx].rows, rows) << name;
    EXPECT_EQ(layout[idx].cols, cols) << name;
  };
  expect("model.embed_tokens.weight", 19, 20);
  expect("model.layers.1.input_layernorm.weight", 1, 20);
  expect("model.layers.1.self_attn.q_proj.weight", 24, 20);
  expect("model.layers.1.self_attn.k_proj.weight", 12, 20);
  expect("model.layers.1.self_attn.v_proj.weight", 12, 20);
  expect("model.layers.1.self_attn.o_proj.weight", 20, 24);
  expect("model.layers.1.post_attention_layernorm.weight", 1, 20);
  expect("model.layers.1.mlp.gate_proj.weight", 22, 20);
  expect("model.layers.1.mlp.up_proj.weight", 22, 20);
  expect("model.layers.1.mlp.down_proj.weight", 20, 22);
  expect("model.norm.weight", 1, 20);
  expect("lm_head.weight", 19, 20);
  EXPECT_EQ(layout.size(), 2 * 9 + 3);
  EXPECT_EQ(layout.find("model.layers.2.input_layernorm.weight"), -1);
  EXPECT_EQ(ParameterLayout(small_config(4, 2, 6, true)).find("lm_head.weight"), -1);
}

TEST(ParametersTest, PlacesAreAlignedDisjointAndMatricesComeFirst) {
  for (const SmallModel& small : small_models()) {
    const ParameterLayout layout(small.config);
    std::vector<Parameter> by_place = layout.parameters();
    std::sort(by_place.begin(), by_place.end(), [](auto& a, auto& b) { return a.offset < b.offset; });
    int64_t end = 0;
    for (const Parameter& p : by_place) {
      EXPECT_EQ(p.offset % kParameterAlignment, 0) << p.name;
      EXPECT_GE(p.offset, end) << p.name;
      EXPECT_LT(p.offset - end, kParameterAlignment) << p.name;
      EXPECT_EQ(p.one_dimensional(), p.offset >= layout.one_dimensional_begin()) << p.name;
      end = p.offset + p.size();
    }
    EXPECT_LE(end, layout.n_elements());
    EXPECT_LT(layout.n_elements() - end, kParameterAlignment);
  }
}

TEST(ParametersTest, AnElementIsNamedByTheParameterThatHoldsIt) {
  const ParameterLayout layout(small_config(2, 2, 10, false));
  for (int idx = 0; idx < layout.size(); ++idx) {
    EXPECT_EQ(layout.at_element(layout[idx].offset), idx);
    EXPECT_EQ(layout.at_element(layout[idx].offset + layout[idx].size() - 1), idx);
  }
}

TEST(ParametersTest, AnyPartOfTheFirstValuesIsThatPartOfTheWhole) {
  const LlamaConfig config = small_config(2, 1, 4, false);
  const ParameterLayout layout(config);
  std::vector<float> whole(static_cast<size_t>(layout.n_elements()));
  initialise<float>(config, layout, 42, 0, whole);
  for (const int64_t n_ranks : {2, 3, 7}) {
    std::vector<float> parts;
    for (int64_t rank = 0; rank < n_ranks; ++rank) {
      const int64_t begin = layout.n_elements() * rank / n_ranks,
                    end = layout.n_elements() * (rank + 1) / n_ranks;
      std::vector<float> part(static_cast<size_t>(end - begin), 7.0F);
      initialise<float>(config, layout, 42, begin, part);
      parts.insert(parts.end(), part.begin(), part.end());
    }
    EXPECT_EQ(parts, whole) << n_ranks << " ranks";
  }
  std::vector<float> other(whole.size());
  initialise<float>(config, layout, 43, 0, other);
  EXPECT_NE(other, whole);
}

TEST(ParametersTest, FirstValuesHaveTheDeviationOfTheirKind) {
  LlamaConfig config = small_config(4, 4, 32, false);
  config.hidden = 128;
  config.intermediate = 128;
  config.layers = 2;
  const ParameterLayout layout(config);
  std::vector<double> values(static_cast<size_t>(layout.n_elements()), 9.0);
  initialise<double>(config, layout, 1, 0, values);
  for (const Parameter& p : layout.parameters()) {
    double sum = 0, squares = 0;
    for (int64_t i = p.offset; i < p.offset + p.size(); ++i) {
      sum += values[static_cast<size_t>(i)];
      squares += values[static_cast<size_t>(i)] * values[static_cast<size_t>(i)];
    }
    const auto n = static_cast<double>(p.size());
    if (p.one_dimensional()) {
      EXPECT_EQ(sum, n) << p.name;
      EXPECT_EQ(squares, n) << p.name;
      continue;
    }
    const double sigma =
        p.kind == Parameter::Kind::kResidualMatrix ? 0.02 / 2.0 : 0.02;  // sqrt(2 * 2 layers)
    EXPECT_NEAR(sum / n, 0.0, 5 * sigma / std::sqrt(n)) << p.name;
    EXPECT_NEAR(std::sqrt(squares / n), sigma, 5 * sigma / std::sqrt(2 * n)) << p.name;
  }
}

}  // namespace
}  // namespace tern::trainer
