// Codec auto: the right choice where it is known, the same on all ranks, said and counted.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "runtime/communicator/planner.h"
#include "tests/ranks.h"

namespace tern {
namespace {

using testing::on_ranks;
using testing::quick_config;

constexpr size_t kMebi = 1 << 20;

/// Hosts of one rank each behind links of this speed.
Planner planner(int n_ranks, double gb_per_s, double alpha = 10e-6) {
  CostModel model;
  model.link = [=](int, int) { return Link{.alpha = alpha, .beta = 1e-9 / gb_per_s}; };
  model.node_of = [](int rank) { return rank; };
  const Calibration speeds = built_in_calibration();
  model.copy_beta = speeds.copy_beta;
  model.reduce_beta = speeds.reduce_beta;
  model.round_overhead = 0.3e-6;
  return Planner({.n_ranks = n_ranks, .model = model});
}

Shape call(size_t n_bytes, Collective collective = Collective::kAllReduce) {
  return {.collective = collective, .n_bytes = n_bytes, .elt = 4};
}

CodecVerdict verdict(Planner& planner, const Shape& shape, const CodecQuestion& question = {}) {
  const auto found = planner.weigh_codecs(shape, question);
  EXPECT_TRUE(found.ok()) << found.error().message;
  return found.ok() ? *found : CodecVerdict{};
}

TEST(AutoCodec, CompressesOnSlowLinksAndNotOnFastOnes) {
  for (const Collective collective : {Collective::kAllReduce, Collective::kReduceScatter})
    for (const int n_ranks : {2, 3, 4, 8}) {
      SCOPED_TRACE(fmt::format("{} of {} ranks", name(collective), n_ranks));
      Planner slow = planner(n_ranks, 0.125);
      const CodecVerdict on_slow = verdict(slow, call(64 * kMebi, collective));
      EXPECT_EQ(on_slow.codec.id, CodecId::kQ8);
      EXPECT_EQ(on_slow.reason, CodecReason::kPays);
      EXPECT_LT(on_slow.encoded_seconds, on_slow.dense_seconds / 3);
      // A codec takes longer than a link of 400 GB/s.
      Planner fast = planner(n_ranks, 400);
      const CodecVerdict on_fast = verdict(fast, call(64 * kMebi, collective));
      EXPECT_EQ(on_fast.codec.id, CodecId::kNone);
      EXPECT_EQ(on_fast.reason, CodecReason::kDoesNotPay);
      EXPECT_GT(on_fast.encoded_seconds, on_fast.dense_seconds);
    }
}

TEST(AutoCodec, TakesTheFastestCodecOfThoseThatTheLossAllows) {
  Planner slow = planner(4, 0.01);
  const Shape shape = call(64 * kMebi);
  EXPECT_EQ(verdict(slow, shape, {.max_loss_gap = 0}).codec.id, CodecId::kQ8);
  EXPECT_EQ(verdict(slow, shape, {.max_loss_gap = 0.05}).codec.id, CodecId::kQ5);
  EXPECT_EQ(verdict(slow, shape, {.max_loss_gap = 0.3}).codec.id, CodecId::kQ5);
  EXPECT_EQ(verdict(slow, shape, {.max_loss_gap = 0.3, .has_residual = true}).codec.id, CodecId::kQ4h);
  EXPECT_EQ(verdict(slow, shape, {.max_loss_gap = 1, .has_residual = true}).codec.id, CodecId::kTopk);
  EXPECT_EQ(verdict(slow, shape, {.max_loss_gap = 100}).codec.id, CodecId::kQ5);  // never biased without one
  for (const bool has_residual : {false, true}) {
    const auto candidates =
        slow.codec_candidates(shape, {.max_loss_gap = 100, .has_residual = has_residual});
    ASSERT_TRUE(candidates.ok());
    const CodecVerdict best = verdict(slow, shape, {.max_loss_gap = 100, .has_residual = has_residual});
    for (const auto& [codec, decision] : *candidates)
      EXPECT_GE(decision->predicted_seconds, best.encoded_seconds) << to_string(codec);
  }
}

TEST(AutoCodec, LeavesSmallAndHiddenCallsDense) {
  Planner slow = planner(4, 0.01);
  EXPECT_EQ(verdict(slow, call(kLeastEncodedBytes - 4)).reason, CodecReason::kSmall);
  EXPECT_EQ(verdict(slow, call(kLeastEncodedBytes)).reason, CodecReason::kPays);
  const Shape shape = call(64 * kMebi);
  const CodecVerdict seen = verdict(slow, shape);
  const CodecVerdict hidden = verdict(slow, shape, {.hidden_seconds = seen.dense_seconds});
  EXPECT_EQ(hidden.reason, CodecReason::kHidden);
  EXPECT_EQ(hidden.codec.id, CodecId::kNone);
  // What is hidden shortens both sides alike, so that in the end the encoded call is all hidden.
  const CodecVerdict half = verdict(slow, shape, {.hidden_seconds = seen.encoded_seconds});
  EXPECT_EQ(half.reason, CodecReason::kPays);
}

TEST(AutoCodec, ATenthMustBeSaved) {
  const CodecSpec q8{.id = CodecId::kQ8};
  EXPECT_EQ(weigh(q8, 0.89, 1, 0).reason, CodecReason::kPays);
  EXPECT_EQ(weigh(q8, 0.89, 1, 0).codec, q8);
  EXPECT_EQ(weigh(q8, 0.91, 1, 0).reason, CodecReason::kDoesNotPay);
  EXPECT_EQ(weigh(q8, 0.91, 1, 0).codec, CodecSpec());
  EXPECT_EQ(weigh(q8, 0.91, 1, 0.5).reason, CodecReason::kPays);  // 0.41 instead of 0.5
  EXPECT_EQ(weigh(q8, 0.5, 1, 1).reason, CodecReason::kHidden);
}

TEST(AutoCodec, AlgorithmsThatCannotEncodeLeaveNone) {
  Planner slow = planner(4, 0.01);
  Shape shape = call(64 * kMebi);
  shape.algorithm = "ring";
  const CodecVerdict found = verdict(slow, shape);
  EXPECT_EQ(found.reason, CodecReason::kNoneAllowed);
  EXPECT_EQ(found.codec.id, CodecId::kNone);
}

/// A calibration file that says that the ranks of a host are far apart, so that codecs pay among threads.
class SlowMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "tern-auto-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::ofstream(folder_ / "speeds.json") << R"({"shared_memory": {"alpha_us": 10, "gb_per_s": 0.01}})";
    config_ = quick_config();
    config_.calibration = (folder_ / "speeds.json").string();
    config_.codec = "auto";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
  Config config_;
};

std::vector<float> values(int rank, size_t n) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<float>((i * 7 + static_cast<size_t>(rank) * 13) % 255);
  return v;
}

TEST_F(SlowMachine, RunsEncodedAndSaysWhy) {
  on_ranks(3, config_, [](Communicator& comm) {
    const size_t n = kMebi / 4;
    const std::vector<float> in = values(comm.rank(), n);
    std::vector<float> out(n);
    ASSERT_TRUE(comm.all_reduce(std::span<const float>(in), std::span<float>(out), Op::kSum).ok());
    const CallReport& report = comm.last_report();
    EXPECT_EQ(report.codec.id, CodecId::kQ8);
    EXPECT_EQ(report.codec_reason, CodecReason::kPays);
    EXPECT_GT(report.predicted_dense_seconds, report.predicted_seconds);
    for (size_t i = 0; i < n; i += 997) {
      float exact = 0;
      for (int r = 0; r < 3; ++r) exact += values(r, n)[i];
      EXPECT_NEAR(out[i], exact, 8) << i;  // half a step for each rank and for the sum
    }
    // A call may say otherwise.
    ASSERT_TRUE(
        comm.all_reduce(std::span<const float>(in), std::span<float>(out), Op::kSum, {.codec = CodecSpec()})
            .ok());
    EXPECT_EQ(comm.last_report().codec.id, CodecId::kNone);
    EXPECT_EQ(comm.last_report().codec_reason, CodecReason::kDense);
  });
}

TEST_F(SlowMachine, EveryDecisionIsCounted) {
  on_ranks(2, config_, [](Communicator& comm) {
    const size_t n = kMebi / 4;
    std::vector<float> floats(n, 1.0F);
    std::vector<int> ints(n, 1);
    std::vector<float> small(100, 1.0F);
    const std::span<float> x(floats);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(comm.all_reduce(std::span<const float>(x), x, Op::kAvg).ok());
    ASSERT_TRUE(comm.all_reduce(std::span<const float>(x), x, Op::kMax).ok());
    ASSERT_TRUE(comm.all_reduce(std::span<const int>(ints), std::span<int>(ints), Op::kSum).ok());
    ASSERT_TRUE(comm.all_reduce(std::span<const float>(small), std::span<float>(small), Op::kSum).ok());
    ASSERT_TRUE(
        comm.all_reduce(std::span<const float>(x), x, Op::kAvg, {.hidden_seconds = 1e9}).ok());
    ASSERT_TRUE(comm.all_reduce(std::span<const float>(x), x, Op::kAvg, {.algorithm = "ring"}).ok());
    ASSERT_TRUE(comm.broadcast(x, 0).ok());
    ASSERT_TRUE(
        comm.all_reduce(std::span<const float>(x), x, Op::kAvg, {.codec = CodecSpec{.id = CodecId::kBf16}})
            .ok());
    const CodecCounts counts = comm.codec_counts();
    const auto n_of = [&](CodecReason reason) { return counts[static_cast<size_t>(reason)]; };
    EXPECT_EQ(n_of(CodecReason::kPays), 3U);
    EXPECT_EQ(n_of(CodecReason::kNotEncodable), 2U);
    EXPECT_EQ(n_of(CodecReason::kSmall), 1U);
    EXPECT_EQ(n_of(CodecReason::kHidden), 1U);
    EXPECT_EQ(n_of(CodecReason::kNoneAllowed), 1U);
    EXPECT_EQ(n_of(CodecReason::kDense), 1U);  // the broadcast
    EXPECT_EQ(n_of(CodecReason::kNamed), 1U);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), uint64_t{0}), 10U);
  });
}

TEST(AutoCodec, SharedMemoryStaysDense) {
  Config config = quick_config();
  config.codec = "auto";
  on_ranks(2, config, [](Communicator& comm) {
    std::vector<float> x(4 * kMebi, 1.0F);
    ASSERT_TRUE(comm.all_reduce(std::span<const float>(x), std::span<float>(x), Op::kSum).ok());
    EXPECT_EQ(comm.last_report().codec.id, CodecId::kNone);
    EXPECT_EQ(comm.last_report().codec_reason, CodecReason::kDoesNotPay);
    EXPECT_EQ(x.back(), 2.0F);
  });
}

TEST(AutoCodec, ANamedCodecOfTheSettingThatCannotApplyIsCounted) {
  Config config = quick_config();
  config.codec = "topk:k=32";
  on_ranks(2, config, [](Communicator& comm) {
    std::vector<float> x(kMebi, 1.0F);
    ASSERT_TRUE(comm.all_reduce(std::span<const float>(x), std::span<float>(x), Op::kSum).ok());
    EXPECT_EQ(comm.last_report().codec_reason, CodecReason::kNoResidual);
    EXPECT_EQ(comm.codec_counts()[static_cast<size_t>(CodecReason::kNoResidual)], 1U);
  });
}

}  // namespace
}  // namespace tern
