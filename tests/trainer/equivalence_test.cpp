// However a run is cut into ranks, passes and buckets, it is the same run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/tiny_run.h"

namespace tern::trainer {
namespace {

struct Form {
  int n_ranks = 1;
  int stage = 0;
  bool overlap = false;
  int64_t bucket = 500'000'000;
  int accumulation = 1;

  std::string name() const {
    return fmt::format("ranks{}_stage{}_{}_bucket{}_passes{}", n_ranks, stage, overlap ? "overlap" : "after",
                       bucket, accumulation);
  }
};

constexpr int64_t kSteps = 6;

struct RunResult {
  std::vector<double> losses;
  std::vector<double> norms;
  std::vector<float> weights;
  double val_loss = 0;
};

RunResult run(const Form& form, const std::vector<std::string>& more = {}) {
  const std::string directory = fresh_directory(form.name());
  std::vector<std::string> assignments = {
      "data.text=" + write_text(directory),
      "run.output_dir=" + directory,
      fmt::format("run.steps={}", kSteps),
      fmt::format("run.checkpoint_every={}", kSteps),
      fmt::format("deepspeed.gradient_accumulation_steps={}", form.accumulation),
      fmt::format("deepspeed.zero_optimization.stage={}", form.stage),
      fmt::format("deepspeed.zero_optimization.overlap_comm={}", form.overlap),
      fmt::format("deepspeed.zero_optimization.reduce_bucket_size={}", form.bucket),
      // Adam divides by the root of a gradient's own square: where a gradient is all rounding noise, so is
      // its sign.
      "deepspeed.optimizer.params.eps=1e-4",
  };
  assignments.insert(assignments.end(), more.begin(), more.end());
  RunResult result;
  const Outcomes outcomes = run_on_threads({.n_ranks = form.n_ranks}, assignments);
  for (const auto& outcome : outcomes)
    EXPECT_TRUE(outcome.ok()) << (outcome.ok() ? "" : outcome.error().message);
  if (!outcomes.front().ok()) return result;
  for (const auto& line : metrics_of(directory)) {
    result.losses.push_back(line["loss"]);
    result.norms.push_back(line["grad_norm"]);
  }
  result.weights = weights_of(directory, kSteps);
  result.val_loss = outcomes.front()->summary["val_loss"];
  return result;
}

double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    size += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(difference / size);
}

const RunResult& reference() {
  static const RunResult result = run({});
  return result;
}

class Equivalence : public testing::TestWithParam<Form> {};

TEST_P(Equivalence, LossesNormsAndWeightsAreThoseOfOneRankWithOneBucket) {
  constexpr double kRelative = 1e-6;
  const RunResult& expected = reference();
  const RunResult got = run(GetParam());
  ASSERT_EQ(got.losses.size(), static_cast<size_t>(kSteps));
  EXPECT_LT(expected.losses.back(), expected.losses.front());
  for (size_t i = 0; i < got.losses.size(); ++i) {
    EXPECT_NEAR(got.losses[i], expected.losses[i], kRelative * expected.losses[i]) << "step " << i + 1;
    EXPECT_NEAR(got.norms[i], expected.norms[i], 2 * kRelative * expected.norms[i]) << "step " << i + 1;
  }
  EXPECT_NEAR(got.val_loss, expected.val_loss, kRelative * expected.val_loss);
  ASSERT_EQ(got.weights.size(), expected.weights.size());
  EXPECT_LT(relative_distance(got.weights, expected.weights), kRelative);
}

INSTANTIATE_TEST_SUITE_P(Forms, Equivalence,
                         testing::Values(Form{1, 2, true, 1000, 1}, Form{1, 0, true, 16, 4},
                                         Form{2, 0, true, 5000, 2}, Form{2, 2, false, 500'000'000, 3},
                                         Form{3, 2, true, 1, 4}, Form{3, 0, false, 100, 2},
                                         Form{4, 0, false, 20'000, 1}, Form{4, 0, true, 500'000'000, 3},
                                         Form{4, 2, true, 500'000'000, 1}, Form{4, 2, true, 3000, 3},
                                         Form{4, 2, false, 3000, 1}, Form{6, 2, true, 700, 2}),
                         [](const auto& form) { return form.param.name(); });

TEST(SameRanks, OverlapAndAccumulationOrderChangeNoBit) {
  const Form after{4, 2, false, 5000, 1};
  const Form overlapped{4, 2, true, 5000, 1};
  const RunResult a = run(after);
  const RunResult b = run(overlapped);
  const RunResult c = run(overlapped);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(b.weights, c.weights);
  EXPECT_EQ(a.losses, b.losses);
}

TEST(Codecs, TrainTooAndSendTheBytesOfTheirFormat) {
  for (const auto& [codec, least] : {std::pair("bf16", 1.9), {"q8", 3.8}, {"topk:k=64", 20.0}}) {
    const std::string directory = fresh_directory(codec);
    const Outcomes outcomes =
        run_on_threads({.n_ranks = 4}, {"data.text=" + write_text(directory), "run.output_dir=" + directory,
                                        "model.hidden_size=128", "run.steps=5", "communication.dense_steps=3",
                                        "deepspeed.zero_optimization.reduce_bucket_size=100000",
                                        std::string("communication.codec=") + codec});
    ASSERT_TRUE(outcomes.front().ok()) << outcomes.front().error().message;
    const auto lines = metrics_of(directory);
    ASSERT_EQ(lines.size(), 5U);
    EXPECT_EQ(lines[2]["codec"], "none");
    EXPECT_EQ(lines[2]["gradient_bytes_on_wire"], lines[2]["gradient_bytes_dense"]);
    EXPECT_EQ(lines[4]["codec"], codec);
    const double ratio =
        lines[4]["gradient_bytes_dense"].get<double>() / lines[4]["gradient_bytes_on_wire"].get<double>();
    EXPECT_GT(ratio, least) << codec;
    EXPECT_LT(lines[4]["loss"].get<double>(), lines[0]["loss"].get<double>());
  }
}

TEST(Codecs, QuantisedRunsStayNearEachOtherForEveryBucketSize) {
  // Blocks are the same for every bucket size, but who owns an element is not, and an owner's own part is
  // exact.
  std::vector<RunResult> results;
  for (const int64_t bucket : {20'000, 70'000, 500'000'000}) {
    results.push_back(run({4, 2, true, bucket, 1}, {"communication.codec=q8", "communication.dense_steps=0",
                                                    "model.hidden_size=128"}));
  }
  for (const RunResult& result : results) {
    EXPECT_LT(relative_distance(result.weights, results.back().weights), 1e-3);
    EXPECT_NEAR(result.losses.back(), results.back().losses.back(), 1e-3);
  }
}

}  // namespace
}  // namespace tern::trainer
