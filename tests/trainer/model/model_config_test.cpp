#include "trainer/model/model_config.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "trainer/model/parameters.h"

namespace tern::trainer {
namespace {

struct Known {
  const char* name;
  LlamaConfig config;
  int64_t n_parameters;
};

std::vector<Known> known_models() {
  return {{"Llama-3 8B", {128256, 4096, 14336, 32, 32, 8, 128}, 8'030'261'248},
          {"Llama-3 70B", {128256, 8192, 28672, 80, 64, 8, 128}, 70'553'706'496},
          {"Llama-3.2 1B",
           {.vocab = 128256,
            .hidden = 2048,
            .intermediate = 8192,
            .layers = 16,
            .heads = 32,
            .kv_heads = 8,
            .head_dim = 64,
            .tie_embeddings = true},
           1'235'814'400},
          {"Llama-2 7B", {32000, 4096, 11008, 32, 32, 32, 128}, 6'738'415'616},
          {"DeepSeek LLM 7B", {102400, 4096, 11008, 30, 32, 32, 128}, 6'910'365'696},
          {"DeepSeek-Coder 6.7B", {32256, 4096, 11008, 32, 32, 32, 128}, 6'740'512'768}};
}

TEST(ModelConfigTest, ParameterCountsAreThoseOfThePublishedModels) {
  for (const Known& known : known_models()) {
    EXPECT_TRUE(validate(known.config).ok()) << known.name;
    EXPECT_EQ(parameter_count(known.config), known.n_parameters) << known.name;
  }
}

TEST(ModelConfigTest, TheLayoutHoldsExactlyTheCountedParameters) {
  for (const Known& known : known_models()) {
    const ParameterLayout layout(known.config);
    int64_t n = 0, matmul = 0;
    for (const Parameter& p : layout.parameters()) {
      n += p.size();
      const bool is_head = known.config.tie_embeddings && p.kind == Parameter::Kind::kEmbedding;
      if (p.kind == Parameter::Kind::kMatrix || p.kind == Parameter::Kind::kResidualMatrix || is_head)
        matmul += p.size();
    }
    EXPECT_EQ(n, known.n_parameters) << known.name;
    EXPECT_EQ(matmul, matmul_parameter_count(known.config)) << known.name;
  }
}

TEST(ModelConfigTest, FlopsPerTokenFollowTheRuleOfTorchtitan) {
  const LlamaConfig config{128256, 4096, 14336, 32, 32, 8, 128};
  // 6 * (8,030,261,248 - embedding - norms) + 12 * layers * hidden * tokens
  const double matmul = 8'030'261'248.0 - 128256.0 * 4096 - 65.0 * 4096;
  EXPECT_DOUBLE_EQ(flops_per_token(config, 8192), 6 * matmul + 12.0 * 32 * 4096 * 8192);
}

TEST(ModelConfigTest, EveryImpossibleValueIsNamedWithTheValue) {
  using Change = std::function<void(LlamaConfig&)>;
  const std::vector<std::pair<std::string, Change>> cases = {
      {"vocab_size is 0", [](LlamaConfig& c) { c.vocab = 0; }},
      {"hidden_size is -1", [](LlamaConfig& c) { c.hidden = -1; }},
      {"intermediate_size is 0", [](LlamaConfig& c) { c.intermediate = 0; }},
      {"num_hidden_layers is 0", [](LlamaConfig& c) { c.layers = 0; }},
      {"num_attention_heads is 0", [](LlamaConfig& c) { c.heads = 0; }},
      {"num_key_value_heads is 0", [](LlamaConfig& c) { c.kv_heads = 0; }},
      {"num_attention_heads 6 is not a multiple of num_key_value_heads 4",
       [](LlamaConfig& c) { c.kv_heads = 4; }},
      {"head_dim 7 is odd", [](LlamaConfig& c) { c.head_dim = 7; }},
      {"max_position_embeddings is 0", [](LlamaConfig& c) { c.max_position = 0; }},
      {"rope_theta is 0", [](LlamaConfig& c) { c.rope_theta = 0; }},
      {"rms_norm_eps is nan",
       [](LlamaConfig& c) { c.rms_norm_eps = std::numeric_limits<double>::quiet_NaN(); }},
      {"initializer_range is -1", [](LlamaConfig& c) { c.initializer_range = -1; }},
      {"rope_scaling.factor is 0",
       [](LlamaConfig& c) { c.rope_scaling = {.kind = RopeScaling::Kind::kLinear, .factor = 0}; }},
      {"rope_scaling.high_freq_factor 1 must be above low_freq_factor 1",
       [](LlamaConfig& c) { c.rope_scaling = {.kind = RopeScaling::Kind::kLlama3, .high_freq_factor = 1}; }},
  };
  for (const auto& [want, change] : cases) {
    LlamaConfig config;
    ASSERT_TRUE(validate(config).ok());
    change(config);
    const Status status = validate(config);
    ASSERT_FALSE(status.ok()) << want;
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_NE(status.error().message.find(want), std::string::npos) << status.error().message;
  }
}

}  // namespace
}  // namespace tern::trainer
