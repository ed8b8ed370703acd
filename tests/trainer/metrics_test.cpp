#include "trainer/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "trainer/banner.h"
#include "trainer/progress_line.h"

namespace tern::trainer {
namespace {

StepRecord record_of(int64_t step, double loss, double seconds) {
  StepRecord record;
  record.step = step;
  record.loss = loss;
  record.tokens = 1000;
  record.step_seconds = seconds;
  record.gradients = {100, 400, 0.01, 0.002};
  record.parameters = {300, 300, 0.03, 0.008};
  record.codec = "q8";
  return record;
}

std::vector<nlohmann::json> lines_of(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(Metrics, AResumedRunDropsTheLinesOfStepsThatItDoesAgain) {
  const std::string path = testing::TempDir() + "metrics_resume.jsonl";
  {
    auto file = MetricsFile::open(path, 0);
    ASSERT_TRUE(file.ok());
    for (int64_t step = 1; step <= 5; ++step) ASSERT_TRUE(file->append(record_of(step, 2.0, 1.0)).ok());
  }
  std::ofstream(path, std::ios::app) << R"({"step": 6, "lo)";  // a run that was killed while it wrote
  auto file = MetricsFile::open(path, 3);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->append(record_of(4, 1.0, 1.0)).ok());
  const auto lines = lines_of(path);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[2]["loss"], 2.0);
  EXPECT_EQ(lines[3]["step"], 4);
  EXPECT_EQ(lines[3]["loss"], 1.0);
}

TEST(Metrics, ALineHoldsTotalsAndTheirGradientPart) {
  const auto json = to_json(record_of(1, std::numeric_limits<double>::quiet_NaN(), 0.5));
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_EQ(json["tokens_per_s"], 2000.0);
  EXPECT_EQ(json["bytes_on_wire"], 400);
  EXPECT_EQ(json["bytes_dense"], 700);
  EXPECT_EQ(json["gradient_bytes_on_wire"], 100);
  EXPECT_DOUBLE_EQ(json["exposed_ms"], 10.0);
  EXPECT_FALSE(json.contains("skipped"));
}

TEST(Metrics, TheSummaryIsMediansMeansAndTheLastLosses) {
  Summary summary;
  for (int64_t step = 1; step <= 21; ++step) {
    summary.add(record_of(step, step <= 11 ? 9.0 : 2.0, step == 1 ? 100.0 : 1.0));
  }
  const auto json = summary.to_json("q8");
  EXPECT_EQ(json["codec"], "q8");
  EXPECT_EQ(json["steps"], 21);
  EXPECT_EQ(json["step_ms"], 1000.0);
  EXPECT_EQ(json["tokens_per_s"], 1000.0);
  EXPECT_EQ(json["train_loss"], 2.0);
  EXPECT_EQ(json["bytes_on_wire_per_step"], 400);
  EXPECT_NEAR(json["exposed_percent"].get<double>(), 100 * 21 * 0.01 / 120, 1e-9);
}

TEST(Metrics, ASummaryOfNoStepsDividesByNothing) {
  const auto json = Summary().to_json("none");
  EXPECT_EQ(json["steps"], 0);
  EXPECT_EQ(json["step_ms"], 0.0);
}

TEST(ProgressLine, ShowsStepTimeLeftAndWhatWasSkipped) {
  StepRecord record = record_of(40, 2.4131, 0.5);
  const std::string line = progress_line(record, {160, 20.0, 40, false});
  EXPECT_THAT(line, testing::HasSubstr("step 40/160  25 %  loss 2.413"));
  EXPECT_THAT(line, testing::HasSubstr("2000 tok/s"));
  EXPECT_THAT(line, testing::HasSubstr("(1/1.8)"));
  EXPECT_THAT(line, testing::EndsWith("left 1:00"));
  record.skipped = "the loss of rank 1 is nan";
  EXPECT_THAT(
      progress_line(record, {160, 20.0, 40, true}),
      testing::AllOf(testing::StartsWith("[=====               ] "), testing::EndsWith("rank 1 is nan")));
}

TEST(Banner, NumbersHaveCommas) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(10'818'432), "10,818,432");
  EXPECT_EQ(with_commas(-123'456), "-123,456");
}

}  // namespace
}  // namespace tern::trainer
