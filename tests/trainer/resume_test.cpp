// A run that stops and goes on is the run that never stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>

#include "runtime/base/json_text.h"
#include "tests/trainer/storage/file_size_limit.h"
#include "tests/trainer/tiny_run.h"

namespace tern::trainer {
namespace {

std::vector<std::string> assignments(const std::string& text, const std::string& directory,
                                     const std::vector<std::string>& more) {
  std::vector<std::string> all = {"data.text=" + text, "run.output_dir=" + directory};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

void expect_ok(const Outcomes& outcomes) {
  for (const auto& outcome : outcomes) ASSERT_TRUE(outcome.ok()) << outcome.error().message;
}

TEST(Resume, IsBitIdenticalWithResidualsMomentsAndData) {
  const std::string whole = fresh_directory("whole");
  const std::string parts = fresh_directory("parts");
  const std::string text = write_text(whole);
  const std::vector<std::string> common = {"communication.codec=topk:k=64", "communication.dense_steps=1",
                                           "model.hidden_size=128", "run.checkpoint_every=4",
                                           "deepspeed.gradient_accumulation_steps=3"};
  const auto with = [&](const std::string& directory, std::vector<std::string> more) {
    more.insert(more.end(), common.begin(), common.end());
    return assignments(text, directory, more);
  };
  expect_ok(run_on_threads({.n_ranks = 4}, with(whole, {"run.steps=8"})));
  expect_ok(run_on_threads({.n_ranks = 4}, with(parts, {"run.steps=4"})));
  expect_ok(run_on_threads({.n_ranks = 4}, with(parts, {"run.steps=8", "run.resume=latest"})));

  EXPECT_EQ(file_ids(whole, 8), file_ids(parts, 8));
  EXPECT_THAT(file_ids(whole, 8), testing::Contains(testing::StartsWith("residual-00003-of-00004")));
  const auto expected = metrics_of(whole);
  const auto got = metrics_of(parts);
  ASSERT_EQ(got.size(), 8U);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i]["loss"], expected[i]["loss"]);
    EXPECT_EQ(got[i]["grad_norm"], expected[i]["grad_norm"]);
    EXPECT_EQ(got[i]["lr"], expected[i]["lr"]);
  }
}

// The tiny model's default buckets are too small for a codec to pay: here the bytes show that it is used.
TEST(Resume, IsBitIdenticalWhereTopkEncodesNearlyAllGradients) {
  const std::string whole = fresh_directory("whole");
  const std::string parts = fresh_directory("parts");
  const std::string text = write_text(whole);
  const auto with = [&](const std::string& directory, int64_t steps) {
    return assignments(text, directory,
                       {fmt::format("run.steps={}", steps), "run.resume=latest", "communication.codec=topk",
                        "communication.dense_steps=1", "model.hidden_size=128", "model.intermediate_size=256",
                        "deepspeed.zero_optimization.reduce_bucket_size=200000"});
  };
  expect_ok(run_on_threads({.n_ranks = 4}, with(whole, 6)));
  expect_ok(run_on_threads({.n_ranks = 4}, with(parts, 3)));
  expect_ok(run_on_threads({.n_ranks = 4}, with(parts, 6)));
  EXPECT_EQ(file_ids(whole, 6), file_ids(parts, 6));
  const auto expected = metrics_of(whole);
  const auto got = metrics_of(parts);
  ASSERT_EQ(got.size(), 6U);
  for (size_t i = 1; i < got.size(); ++i) {
    EXPECT_EQ(got[i]["loss"], expected[i]["loss"]);
    EXPECT_EQ(got[i]["codec"], "topk:k=32");
    const double dense = got[i]["gradient_bytes_dense"];
    EXPECT_LT(got[i]["gradient_bytes_on_wire"].get<double>(), dense / 5) << "step " << i + 1;
  }
}

TEST(Resume, ANewRunRefusesADirectoryThatHoldsCheckpointsUnlessItMayDeleteThem) {
  const std::string directory = fresh_directory("run");
  const std::string text = write_text(directory);
  expect_ok(run_on_threads({.n_ranks = 2},
                           assignments(text, directory, {"run.steps=4", "run.checkpoint_every=2"})));
  const auto before = file_ids(directory, 4);
  const auto metrics = metrics_of(directory);
  std::string said;
  for (const auto& outcome :
       run_on_threads({.n_ranks = 2, .said = &said},
                      assignments(text, directory, {"run.steps=1", "run.measure_peak=true"}))) {
    ASSERT_FALSE(outcome.ok());
    EXPECT_THAT(outcome.error().message,
                testing::HasSubstr("holds checkpoints of an earlier run (step_2, step_4)"));
    EXPECT_THAT(outcome.error().message, testing::HasSubstr("run.overwrite=true"));
  }
  EXPECT_THAT(said, testing::Not(testing::HasSubstr("GFLOP/s"))) << "refused before anything is measured";
  EXPECT_EQ(file_ids(directory, 4), before);
  EXPECT_EQ(metrics_of(directory), metrics);
  EXPECT_EQ(checkpoint_steps(directory), (std::vector<int64_t>{2, 4}));

  said.clear();
  expect_ok(run_on_threads({.n_ranks = 2, .said = &said},
                           assignments(text, directory, {"run.steps=1", "run.overwrite=true"})));
  EXPECT_THAT(said, testing::HasSubstr("deleted     step_2, step_4 of an earlier run"));
  EXPECT_EQ(checkpoint_steps(directory), std::vector<int64_t>{1});
  EXPECT_EQ(metrics_of(directory).size(), 1U);
}

TEST(Resume, FromAnEarlierCheckpointRefusesToMixWithTheLaterOnes) {
  const std::string directory = fresh_directory("run");
  const std::string text = write_text(directory);
  const std::string early = checkpoint_path(directory, 2) + "/";
  expect_ok(run_on_threads({.n_ranks = 2},
                           assignments(text, directory, {"run.steps=4", "run.checkpoint_every=2"})));
  const Outcomes refused =
      run_on_threads({.n_ranks = 2}, assignments(text, directory, {"run.steps=3", "run.resume=" + early}));
  ASSERT_FALSE(refused[1].ok());
  EXPECT_THAT(refused[1].error().message, testing::HasSubstr("after the one to resume from (step_4)"));
  expect_ok(run_on_threads(
      {.n_ranks = 2},
      assignments(text, directory, {"run.steps=3", "run.resume=" + early, "run.overwrite=true"})));
  EXPECT_EQ(checkpoint_steps(directory), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(metrics_of(directory).size(), 3U);
  // Into a directory of its own there is nothing to mix with.
  expect_ok(run_on_threads(
      {.n_ranks = 2}, assignments(text, fresh_directory("own"), {"run.steps=3", "run.resume=" + early})));
}

TEST(Resume, AFailureBeforeTheFirstStepLeavesAnEarlierRunAsItWas) {
  const std::string directory = fresh_directory("run");
  const std::string text = write_text(directory);
  expect_ok(run_on_threads({.n_ranks = 2}, assignments(text, directory, {"run.steps=2"})));
  const auto before = file_ids(directory, 2);
  const Outcomes outcomes = run_on_threads(
      {.n_ranks = 2},
      assignments(text, directory, {"run.steps=2", "run.overwrite=true", "deepspeed.train_batch_size=3000"}));
  ASSERT_FALSE(outcomes[0].ok());
  EXPECT_EQ(file_ids(directory, 2), before);
  EXPECT_EQ(metrics_of(directory).size(), 2U);
}

TEST(Resume, AtTheLastStepSaysThatThereIsNothingToDoAndChangesNothing) {
  const std::string directory = fresh_directory("run");
  const std::string text = write_text(directory);
  expect_ok(run_on_threads({.n_ranks = 2}, assignments(text, directory, {"run.steps=3"})));
  const auto summary = read_json_file(directory + "/summary.json");
  for (const int64_t steps : {3, 1}) {
    std::string said;
    const Outcomes outcomes = run_on_threads(
        {.n_ranks = 2, .said = &said},
        assignments(text, directory, {fmt::format("run.steps={}", steps), "run.resume=latest"}));
    expect_ok(outcomes);
    EXPECT_THAT(said,
                testing::HasSubstr(fmt::format("step_3 is at step 3, and run.steps is {}; raise", steps)));
    EXPECT_FALSE(outcomes[0]->interrupted);
    EXPECT_EQ(metrics_of(directory).size(), 3U);
    EXPECT_EQ(*read_json_file(directory + "/summary.json"), *summary);
  }
}

TEST(Resume, OfTheLatestWhereThereIsNoneSaysThatItStartsAnew) {
  const std::string directory = fresh_directory("run");
  const std::string text = write_text(directory);
  std::ofstream(directory + "/metrics.jsonl") << "{\"step\": 1, \"loss\": 5}\n";
  std::string said;
  expect_ok(run_on_threads({.n_ranks = 2, .said = &said},
                           assignments(text, directory, {"run.steps=1", "run.resume=latest"})));
  EXPECT_THAT(said, testing::HasSubstr(directory + " holds no checkpoint yet, so this run starts at step 0"));
  EXPECT_THAT(said, testing::HasSubstr("replaced    metrics.jsonl of an earlier run"));
  EXPECT_EQ(metrics_of(directory).size(), 1U);
}

TEST(Resume, OfTheLatestSaysThatItPassesOverANewerOneThatIsNotWhole) {
  const std::string directory = fresh_directory("run");
  const std::string text = write_text(directory);
  expect_ok(run_on_threads({.n_ranks = 2},
                           assignments(text, directory, {"run.steps=4", "run.checkpoint_every=2"})));
  std::filesystem::remove(checkpoint_path(directory, 4) + "/manifest.json");
  std::string said;
  expect_ok(run_on_threads({.n_ranks = 2, .said = &said},
                           assignments(text, directory, {"run.steps=4", "run.resume=latest"})));
  EXPECT_THAT(said,
              testing::HasSubstr(fmt::format("skipped     {}, which is newer: it is no whole checkpoint, "
                                             "for it has no manifest.json",
                                             checkpoint_path(directory, 4))));
  EXPECT_THAT(said, testing::HasSubstr(fmt::format("resumed     {}", checkpoint_path(directory, 2))));
  said.clear();
  expect_ok(run_on_threads({.n_ranks = 2, .said = &said},
                           assignments(text, directory, {"run.steps=5", "run.resume=latest"})));
  EXPECT_THAT(said, testing::Not(testing::HasSubstr("skipped")));
}

TEST(Resume, GoesOnWithAnyOtherNumberOfRanks) {
  const std::string whole = fresh_directory("whole");
  const std::string parts = fresh_directory("parts");
  const std::string text = write_text(whole);
  const auto with = [&](const std::string& directory, int64_t steps) {
    return assignments(text, directory,
                       {fmt::format("run.steps={}", steps), "run.checkpoint_every=2", "run.resume=latest",
                        "deepspeed.train_batch_size=60", "deepspeed.optimizer.params.eps=1e-4"});
  };
  expect_ok(run_on_threads({.n_ranks = 1}, with(whole, 8)));
  expect_ok(run_on_threads({.n_ranks = 4}, with(parts, 2)));
  expect_ok(run_on_threads({.n_ranks = 3}, with(parts, 4)));
  expect_ok(run_on_threads({.n_ranks = 5}, with(parts, 6)));
  expect_ok(run_on_threads({.n_ranks = 1}, with(parts, 8)));
  const auto expected = metrics_of(whole);
  const auto got = metrics_of(parts);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const double loss = expected[i]["loss"];
    EXPECT_NEAR(got[i]["loss"].get<double>(), loss, 1e-6 * loss) << "step " << i + 1;
  }
}

TEST(Resume, AStopRequestEndsAllRanksAfterTheSameStepWithACheckpoint) {
  const std::string directory = fresh_directory("run");
  const std::string text = write_text(directory);
  std::atomic<int> n_asked = 0;
  const Outcomes outcomes = run_on_threads({.n_ranks = 3, .stop = [&] { return ++n_asked == 3; }},
                                           assignments(text, directory, {}));
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(outcome.ok()) << outcome.error().message;
    EXPECT_TRUE(outcome->interrupted);
    EXPECT_EQ(outcome->checkpoint, checkpoint_path(directory, 3));
  }
  EXPECT_EQ(metrics_of(directory).size(), 3U);
  const Outcomes resumed =
      run_on_threads({.n_ranks = 3}, assignments(text, directory, {"run.resume=" + outcomes[0]->checkpoint}));
  expect_ok(resumed);
  EXPECT_EQ(metrics_of(directory).size(), 8U);
}

TEST(Resume, AFullDiskEndsTheRunOnAllRanksAndLeavesTheLastGoodCheckpoint) {
  const std::string directory = fresh_directory("run");
  const std::string text = write_text(directory);
  const auto with = [&](int64_t steps) {
    return assignments(text, directory,
                       {fmt::format("run.steps={}", steps), "run.checkpoint_every=2", "run.resume=latest"});
  };
  expect_ok(run_on_threads({.n_ranks = 3}, with(2)));
  const auto before = file_ids(directory, 2);
  std::optional<FileSizeLimit> limit;
  const auto fill_disk = [&] {
    if (!limit) limit.emplace(100'000);  // the weights take 140 kB
    return false;
  };
  const Outcomes outcomes = run_on_threads({.n_ranks = 3, .stop = fill_disk}, with(4));
  limit.reset();
  for (const auto& outcome : outcomes) {
    ASSERT_FALSE(outcome.ok());
    EXPECT_THAT(outcome.error().message,
                testing::HasSubstr("model.safetensors beyond 100000 bytes: File too large"));
    EXPECT_EQ(outcome.error().rank, 0);
  }
  EXPECT_EQ(file_ids(directory, 2), before);
  EXPECT_FALSE(std::filesystem::exists(checkpoint_path(directory, 4) + ".partial"));
  expect_ok(run_on_threads({.n_ranks = 3}, with(4)));
}

TEST(Resume, FromAChangedTextIsRefusedOnAllRanks) {
  const std::string directory = fresh_directory("run");
  const std::string text = write_text(directory);
  expect_ok(run_on_threads({.n_ranks = 2}, assignments(text, directory, {"run.checkpoint_every=8"})));
  write_text(directory, 21'000);
  for (const auto& outcome :
       run_on_threads({.n_ranks = 2}, assignments(text, directory, {"run.resume=latest"}))) {
    ASSERT_FALSE(outcome.ok());
    EXPECT_THAT(outcome.error().message, testing::HasSubstr("is not the text that"));
  }
}

}  // namespace
}  // namespace tern::trainer
