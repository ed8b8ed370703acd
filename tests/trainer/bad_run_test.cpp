// What cannot be run ends on all ranks with the same sentence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>

#include "tests/trainer/tiny_run.h"
#include "trainer/step_agreement.h"

namespace tern::trainer {
namespace {

using testing::HasSubstr;

std::string problem(const std::vector<std::string>& more, int n_ranks = 3) {
  const std::string directory = fresh_directory("run");
  std::vector<std::string> assignments = {"data.text=" + write_text(directory),
                                          "run.output_dir=" + directory};
  assignments.insert(assignments.end(), more.begin(), more.end());
  const Outcomes outcomes = run_on_threads({.n_ranks = n_ranks}, assignments);
  for (const auto& outcome : outcomes) {
    EXPECT_FALSE(outcome.ok());
    if (outcome.ok()) return "";
    EXPECT_EQ(outcome.error().message, outcomes.front().error().message);
    EXPECT_EQ(outcome.error().rank, outcomes.front().error().rank);
  }
  return outcomes.front().error().message;
}

TEST(BadRun, EveryImpossibleConfigurationSaysWhy) {
  EXPECT_THAT(problem({"run.stepz=3"}),
              HasSubstr("unknown key run.stepz; the nearest known key is run.steps"));
  EXPECT_THAT(problem({"run.steps=many"}), HasSubstr("run.steps is \"many\"; allowed: a whole number"));
  EXPECT_THAT(problem({"deepspeed.train_batch_size=10"}),
              HasSubstr("train_batch_size 10 is no multiple of 3 ranks"));
  EXPECT_THAT(problem({"model.vocab_size=100"}),
              HasSubstr("model.vocab_size 100 is smaller than the 256 tokens"));
  EXPECT_THAT(problem({"data.text=/nowhere/text.txt"}), HasSubstr("there is no file /nowhere/text.txt"));
  EXPECT_THAT(problem({"deepspeed.train_batch_size=3000"}), HasSubstr("the data is too small: 20"));
  EXPECT_THAT(problem({"communication.codec=q9"}), HasSubstr("communication.codec: "));
  EXPECT_THAT(problem({"communication.codec=topk:k=33"}), HasSubstr("communication.codec: "));
  EXPECT_THAT(problem({"communication.codec=topk", "communication.residual=false"}),
              HasSubstr("does not converge"));
  EXPECT_THAT(problem({"communication.codec=bf16", "communication.residual=true"}),
              HasSubstr("no use for a residual"));
  EXPECT_THAT(problem({"model.hidden_size=65536"}), HasSubstr("reduce_bucket_size 10000 makes"));
  EXPECT_THAT(problem({"run.output_dir=/proc/nowhere"}),
              HasSubstr("run.output_dir: cannot create /proc/nowhere"));
  EXPECT_THAT(problem({"run.resume=/nowhere"}), HasSubstr("/nowhere is not a checkpoint"));
  EXPECT_THAT(problem({"model.hidden_size=65536", "model.intermediate_size=262144",
                       "deepspeed.zero_optimization.reduce_bucket_size=5e8"}),
              HasSubstr("GB free"));
}

TEST(BadRun, AFailureOfOneRankIsEveryRanksErrorAndNamesIt) {
  Config settings;
  settings.heap_bytes = 64 << 20;
  const auto worlds = World::in_process_world(3, settings);
  ASSERT_TRUE(worlds.ok());
  const std::string directory = fresh_directory("run");
  const std::string text = write_text(directory);
  std::atomic<int> n_speakers = 0;
  std::vector<std::thread> threads;
  for (const World& world : *worlds) {
    threads.emplace_back([&] {
      // Only on rank 1 is the text missing.
      const std::string assignments[] = {"data.text=" + (world.rank == 1 ? directory + "/none" : text),
                                         "run.output_dir=" + directory};
      const auto outcome = run_training(world, RunConfig::from_file(kTinyConfig, assignments), {}, nullptr);
      ASSERT_FALSE(outcome.ok());
      EXPECT_EQ(outcome.error().rank, 1);
      EXPECT_THAT(outcome.error().message, HasSubstr(directory + "/none"));
      if (speaks_for_failure(world, outcome.error())) {
        ++n_speakers;
        EXPECT_EQ(world.rank, 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n_speakers, 1);
}

TEST(BadRun, DivergenceIsGivenUpAfterSomeSkippedSteps) {
  EXPECT_THAT(problem({"deepspeed.scheduler.params.warmup_max_lr=1000", "run.steps=40",
                       "deepspeed.gradient_clipping=0", "model.initializer_range=10",
                       "deepspeed.optimizer.params.weight_decay=1000"}),
              HasSubstr("10 steps in a row could not be applied"));
}

TEST(StepVotes, NameTheFirstRankAndTensorThatIsNotFinite) {
  const ParameterLayout layout(LlamaConfig{});
  Config settings;
  settings.heap_bytes = 64 << 20;
  const auto worlds = World::in_process_world(3, settings);
  std::vector<std::thread> threads;
  for (const World& world : *worlds) {
    threads.emplace_back([&] {
      auto comm = Communicator::create(world);
      ASSERT_TRUE(comm.ok());
      Traffic traffic;
      StepVote vote{.loss_sum = 1.0 + world.rank, .sum_of_squares = 2.0, .bad_element = -1, .stop = 0};
      const auto good = agree_on_step(*comm, vote, false, layout, traffic);
      ASSERT_TRUE(good.ok());
      EXPECT_EQ(good->loss_sum, 6.0);
      EXPECT_EQ(good->sum_of_squares, 6.0);
      EXPECT_EQ(good->skip, "");
      EXPECT_FALSE(good->stop);
      EXPECT_EQ(agree_on_step(*comm, vote, true, layout, traffic)->sum_of_squares, 2.0);

      const int param_idx = layout.find("model.layers.3.mlp.up_proj.weight");
      if (world.rank == 1) vote.bad_element = static_cast<double>(layout[param_idx].offset + 5);
      if (world.rank == 2) vote.stop = 1;
      const auto bad = agree_on_step(*comm, vote, false, layout, traffic);
      EXPECT_EQ(bad->skip, "rank 1's gradient of model.layers.3.mlp.up_proj.weight (layer 3) is not finite");
      EXPECT_TRUE(bad->stop);
      if (world.rank == 0) vote.loss_sum = std::numeric_limits<double>::infinity();
      EXPECT_EQ(agree_on_step(*comm, vote, false, layout, traffic)->skip, "the loss of rank 0 is inf");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tern::trainer
