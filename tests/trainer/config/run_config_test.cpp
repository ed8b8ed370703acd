#include "trainer/config/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace tern::trainer {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

Json smallest() {
  return Json::parse(R"({"data": {"text": "some.txt"}, "deepspeed": {"train_batch_size": 4}})");
}

std::string problem(const std::string& assignment) {
  const std::string assignments[] = {assignment};
  const auto config = RunConfig::from_json(smallest(), assignments);
  return config.ok() ? "" : config.error().message;
}

TEST(RunConfig, TheSmallestRunIsValid) {
  const auto config = RunConfig::from_json(smallest());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->batch.train, 4);
  EXPECT_EQ(config->model.kv_heads, config->model.heads);
  EXPECT_EQ(config->resolved["run"]["steps"], 100);
}

TEST(RunConfig, HuggingFaceLlamaConfigsAreReadAsTheyAre) {
  Json input = smallest();
  input["model"] = Json::parse(R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": [128001, 128009], "head_dim": null,
    "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192,
    "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32,
    "num_hidden_layers": 16, "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
    "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
    "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.45.0",
    "use_cache": true, "vocab_size": 128256})");
  const auto config = RunConfig::from_json(input);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(parameter_count(config->model), 1'235'814'400);
  EXPECT_EQ(config->model.rope_scaling.kind, RopeScaling::Kind::kLlama3);
}

TEST(RunConfig, WhatCannotBeIsOneSentenceNamingTheKey) {
  EXPECT_THAT(problem("deepspeed.fp16.enabled=true"),
              HasSubstr("deepspeed.fp16.enabled is true; allowed: false"));
  EXPECT_THAT(problem("deepspeed.bf16.enabled=true"), HasSubstr("fp32"));
  EXPECT_THAT(problem("deepspeed.zero_optimization.stage=3"), HasSubstr("0 or 2"));
  EXPECT_THAT(problem("deepspeed.optimizer.type=Lamb"), HasSubstr("AdamW or Adam"));
  EXPECT_THAT(problem("deepspeed.scheduler.type=OneCycle"), HasSubstr("WarmupLR or"));
  EXPECT_THAT(problem("deepspeed.scheduler.type=WarmupDecayLR"), HasSubstr("total_num_steps is absent"));
  EXPECT_THAT(problem("deepspeed.offload_optimizer.device=cpu"),
              HasSubstr("unknown key deepspeed.offload_optimizer"));
  EXPECT_THAT(problem("data.sequence_length=4096"),
              HasSubstr("longer than model.max_position_embeddings 2048"));
  EXPECT_THAT(problem("data.text=null"), HasSubstr("data.text is absent"));
  EXPECT_THAT(problem("model.num_attention_heads=7"), HasSubstr("384"));
  EXPECT_THAT(problem("model.hidden_act=gelu"), HasSubstr("silu"));
  EXPECT_THAT(problem("model=/nowhere/config.json"),
              HasSubstr("model: there is no file /nowhere/config.json"));
  EXPECT_THAT(problem("deepspeed=/nowhere/ds.json"), HasSubstr("deepspeed: there is no file"));
}

TEST(RunConfig, ModelAndDeepspeedMayBePathsAndAssignmentsWin) {
  const std::string path = testing::TempDir() + "run_config_test_ds.json";
  std::ofstream(path) << R"({"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 0.5}}})";
  const std::string assignments[] = {"deepspeed.optimizer.params.lr=0.25", "deepspeed=" + path};
  const auto config = RunConfig::from_json(smallest(), assignments);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->batch.train, 8);
  EXPECT_EQ(config->schedule.base_lr, 0.25);
}

TEST(RunConfig, WarmUpRisesToTheOptimizersRateWhenItsOwnIsAbsent) {
  const std::string assignments[] = {"deepspeed.scheduler.type=WarmupLR",
                                     "deepspeed.optimizer.params.lr=0.5"};
  const auto config = RunConfig::from_json(smallest(), assignments);
  ASSERT_TRUE(config.ok());
  EXPECT_TRUE(config->max_lr_from_optimizer);
  EXPECT_EQ(config->schedule.max_lr, 0.5);
}

}  // namespace
}  // namespace tern::trainer
