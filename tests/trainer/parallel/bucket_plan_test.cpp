#include "trainer/parallel/bucket_plan.h"

#include <gtest/gtest.h>

#include <set>

namespace tern::trainer {
namespace {

LlamaConfig small_model() {
  LlamaConfig config;
  config.vocab = 256;
  config.hidden = 48;
  config.intermediate = 80;
  config.layers = 3;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 12;
  return config;
}

TEST(BucketPlanTest, BucketsCoverTheBufferOnceForEverySizeWorldAndGrain) {
  const ParameterLayout layout(small_model());
  for (const int64_t elements : {1L, 100L, 1000L, 40'000L, 1'000'000'000L}) {
    for (const int ranks : {1, 2, 3, 4, 7}) {
      for (const int64_t grain : {16, 128, 4096}) {
        const BucketPlan plan(layout, {elements, ranks, grain});
        EXPECT_GE(plan.n_padded(), layout.n_elements());
        EXPECT_LE(plan.n_padded(), layout.n_elements() + ranks * kParameterAlignment);
        int64_t end = plan.n_padded();
        for (int i = 0; i < plan.size(); ++i) {
          EXPECT_EQ(plan[i].end, end);
          EXPECT_EQ(plan[i].size() % ranks, 0);
          EXPECT_EQ(plan.shard(i, ranks - 1).end, end);
          EXPECT_EQ(plan.shard(i, 0).begin, plan[i].begin);
          end = plan[i].begin;
        }
        EXPECT_EQ(end, 0);
      }
    }
  }
}

TEST(BucketPlanTest, EveryParameterMakesItsBucketsReadyAndNoOther) {
  const ParameterLayout layout(small_model());
  const BucketPlan plan(layout, {1000, 3, 16});
  std::vector<int> n_waiting;
  for (const Bucket& bucket : plan.buckets()) n_waiting.push_back(bucket.n_parameters);
  for (int param_idx = layout.size() - 1; param_idx >= 0; --param_idx) {
    int64_t n_covered = 0;
    for (const int bucket_idx : plan.buckets_of(param_idx)) {
      --n_waiting[static_cast<size_t>(bucket_idx)];
      const Parameter& parameter = layout[param_idx];
      n_covered += std::min(plan[bucket_idx].end, parameter.offset + parameter.size()) -
                   std::max(plan[bucket_idx].begin, parameter.offset);
    }
    EXPECT_EQ(n_covered, layout[param_idx].size()) << layout[param_idx].name;
  }
  for (const int n : n_waiting) EXPECT_EQ(n, 0);
}

TEST(BucketPlanTest, CompressibleBucketsHoldMatricesOnlyAndWholeBlocksPerRank) {
  const ParameterLayout layout(small_model());
  for (const int ranks : {1, 2, 4}) {
    const BucketPlan plan(layout, {20'000, ranks, 4096});
    for (int i = 0; i < plan.size(); ++i) {
      if (!plan[i].compressible) continue;
      EXPECT_LE(plan[i].end, layout.one_dimensional_begin());
      EXPECT_EQ(plan.shard(i, ranks - 1).begin % 4096, 0);
      EXPECT_GE(plan[i].size(), 16384);
    }
  }
}

TEST(BucketPlanTest, CutsLieAtTheSamePlacesForEveryBucketSize) {
  const ParameterLayout layout(small_model());
  const BucketPlan small(layout, {1, 2, 128});
  std::set<int64_t> cuts;
  for (const Bucket& bucket : small.buckets()) cuts.insert(bucket.begin);
  for (const int64_t elements : {1000, 5000, 1'000'000}) {
    const BucketPlan plan(layout, {elements, 2, 128});
    for (const Bucket& bucket : plan.buckets()) {
      EXPECT_TRUE(cuts.contains(bucket.begin)) << elements << " " << bucket.begin;
    }
  }
}

}  // namespace
}  // namespace tern::trainer
