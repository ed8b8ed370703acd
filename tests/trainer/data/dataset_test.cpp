#include "trainer/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "trainer/data/prefetcher.h"

namespace tern::trainer {
namespace {

std::vector<uint8_t> counting_tokens(size_t n) {
  std::vector<uint8_t> tokens(n);
  std::iota(tokens.begin(), tokens.end(), uint8_t{0});
  return tokens;
}

DatasetOptions options(int64_t train_batch = 4) {
  return {.sequence_length = 8, .validation_fraction = 0.25, .shuffle_seed = 5, .train_batch = train_batch};
}

TEST(DatasetTest, TargetsAreTheNextTokens) {
  const auto tokens = counting_tokens(200);
  const auto dataset = Dataset::create(tokens, options());
  ASSERT_TRUE(dataset.ok());
  EXPECT_EQ(dataset->n_train() + dataset->n_validation(), 24);  // (200 - 1) / 8
  EXPECT_EQ(dataset->n_validation(), 6);
  TokenBatch batch;
  dataset->train_samples(0, 18, batch);
  for (size_t i = 0; i < batch.inputs.size(); ++i) EXPECT_EQ(batch.targets[i], batch.inputs[i] + 1);
}

TEST(DatasetTest, AnEpochTakesEverySampleOnceAndNoneOfValidation) {
  const auto tokens = counting_tokens(200);
  const auto dataset = Dataset::create(tokens, options());
  ASSERT_TRUE(dataset.ok());
  TokenBatch batch;
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::map<int32_t, int> starts;
    dataset->train_samples(epoch * 18, 18, batch);
    for (size_t i = 0; i < 18; ++i) ++starts[batch.inputs[i * 8]];
    EXPECT_EQ(starts.size(), 18U);
    EXPECT_LT(starts.rbegin()->first, 18 * 8);
  }
}

TEST(DatasetTest, TheBatchOfAStepIsTheSameSetForEveryNumberOfRanks) {
  const auto tokens = counting_tokens(250);
  const auto dataset = Dataset::create(tokens, options(12));
  ASSERT_TRUE(dataset.ok());
  std::vector<int32_t> expected;
  for (const auto& [ranks, accumulation] :
       {std::pair(1, 1), {1, 3}, {2, 2}, {3, 1}, {3, 4}, {4, 3}, {12, 1}}) {
    std::vector<int32_t> starts;
    for (int rank = 0; rank < ranks; ++rank) {
      const Shard shard{rank, ranks, 12, 12 / ranks / accumulation, accumulation};
      Prefetcher prefetcher(*dataset, shard, 24, 2);
      for (int64_t pass = 0; pass < accumulation; ++pass) {
        const TokenBatch& batch = prefetcher.next();
        for (int64_t i = 0; i < shard.micro; ++i) starts.push_back(batch.inputs[static_cast<size_t>(i) * 8]);
      }
    }
    if (expected.empty()) expected = starts;
    EXPECT_EQ(starts, expected) << ranks << " ranks, " << accumulation << " passes";
  }
}

TEST(DatasetTest, ThreadsDoNotChangeTheOrder) {
  const auto tokens = counting_tokens(2000);
  const auto dataset = Dataset::create(tokens, options());
  ASSERT_TRUE(dataset.ok());
  const Shard shard{1, 2, 4, 1, 2};
  Prefetcher one(*dataset, shard, 8, 1);
  Prefetcher many(*dataset, shard, 8, 7);
  for (int i = 0; i < 500; ++i) {
    TokenBatch expected;
    dataset->train_samples(shard.first_sample(8 + static_cast<uint64_t>(i) / 2 * 4, i % 2), 1, expected);
    ASSERT_EQ(one.next().inputs, expected.inputs) << i;
    ASSERT_EQ(many.next().inputs, expected.inputs) << i;
  }
}

TEST(DatasetTest, ValidationIsSpreadAndPaddedWithoutTargets) {
  const auto tokens = counting_tokens(200);
  const auto dataset = Dataset::create(tokens, options());
  ASSERT_TRUE(dataset.ok());
  TokenBatch batch;
  dataset->validation_samples(2, 4, 3, batch);
  EXPECT_EQ(batch.inputs[0], (18 + 4) * 8);  // the third of three out of six
  EXPECT_EQ(batch.targets[0], (18 + 4) * 8 + 1);
  for (size_t i = 8; i < 32; ++i) EXPECT_EQ(batch.targets[i], -1);
}

TEST(DatasetTest, TooLittleDataIsOneSentenceWithTheNumbers) {
  const auto tokens = counting_tokens(30);
  const auto dataset = Dataset::create(tokens, options(4));
  ASSERT_FALSE(dataset.ok());
  EXPECT_THAT(dataset.error().message, testing::HasSubstr("30 tokens make 3 sequences of 8"));
  EXPECT_THAT(dataset.error().message, testing::HasSubstr("one step takes 4 beside the 1 for validation"));
  for (const size_t n : {0, 1, 5}) {
    const auto none = Dataset::create(counting_tokens(n), options());
    ASSERT_FALSE(none.ok());
    EXPECT_THAT(none.error().message, testing::HasSubstr(fmt::format("{} tokens make 0 sequences of 8", n)));
  }
}

TEST(DatasetTest, AsManyTokensAsAskedForAreEnoughAndOneLessIsNot) {
  for (const double share : {0.0, 0.05, 0.25, 0.9}) {
    for (const int64_t batch : {1, 4, 37}) {
      DatasetOptions wanted = options(batch);
      wanted.validation_fraction = share;
      const std::string message = Dataset::create({}, wanted).error().message;
      const std::string mark = "at least ";
      const size_t n = std::stoul(message.substr(message.find(mark) + mark.size()));
      EXPECT_TRUE(Dataset::create(counting_tokens(n), wanted).ok()) << share << " of " << n;
      EXPECT_FALSE(Dataset::create(counting_tokens(n - 1), wanted).ok()) << share << " of " << n;
    }
  }
}

}  // namespace
}  // namespace tern::trainer
