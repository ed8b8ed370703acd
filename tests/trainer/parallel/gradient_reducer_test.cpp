#include "trainer/parallel/gradient_reducer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <thread>

#include "runtime/base/philox.h"

namespace tern::trainer {
namespace {

LlamaConfig small_model() {
  LlamaConfig config;
  config.hidden = 128;
  config.intermediate = 256;
  config.layers = 2;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = 64;
  return config;
}

void on_ranks(int n_ranks, const std::function<void(Communicator&)>& body) {
  Config config;
  config.heap_bytes = 64 << 20;
  const auto worlds = World::in_process_world(n_ranks, config);
  ASSERT_TRUE(worlds.ok());
  std::vector<std::thread> threads;
  for (const World& world : *worlds) {
    threads.emplace_back([&world, &body] {
      auto comm = Communicator::create(world);
      ASSERT_TRUE(comm.ok()) << comm.error().message;
      body(*comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

float value_of(int rank, int64_t element_idx) {
  return static_cast<float>((element_idx % 97) *
                            (rank + 1));  // small whole numbers: every order of summing is exact
}

void fill(GradientReducer& reducer, const ParameterLayout& layout, int rank) {
  for (const Parameter& parameter : layout.parameters()) {
    for (int64_t i = parameter.offset; i < parameter.offset + parameter.size(); ++i) {
      reducer.gradients()[static_cast<size_t>(i)] = value_of(rank, i);
    }
  }
}

/// One step of made-up gradients, parameters in backward's order.
Status reduce(GradientReducer& reducer, const ParameterLayout& layout, Traffic& traffic) {
  for (int param_idx = layout.size() - 1; param_idx >= 0; --param_idx) reducer.parameter_ready(param_idx);
  return reducer.finish(traffic);
}

TEST(GradientReducerTest, EveryOwnerHasTheSumOfAllRanks) {
  const ParameterLayout layout(small_model());
  for (const int stage : {0, 2}) {
    for (const bool overlap : {false, true}) {
      for (const int64_t bucket : {5'000L, 30'000L, 10'000'000L}) {
        constexpr int kRanks = 3;
        const BucketPlan plan(layout, {bucket, kRanks, 16});
        std::atomic<size_t> on_wire{0};
        std::atomic<size_t> dense{0};
        on_ranks(kRanks, [&](Communicator& comm) {
          auto reducer = GradientReducer::create(comm, plan, {stage, overlap, {}, false});
          ASSERT_TRUE(reducer.ok());
          fill(*reducer, layout, comm.rank());
          reducer->begin_step({.step = 1, .compress = false});
          Traffic traffic;
          ASSERT_TRUE(reduce(*reducer, layout, traffic).ok());
          EXPECT_FALSE(reducer->non_finite().has_value());
          on_wire += traffic.bytes_on_wire;
          dense += traffic.bytes_dense;
          for (int bucket_idx = 0; bucket_idx < plan.size(); ++bucket_idx) {
            const Range owned = stage == 0 ? Range{plan[bucket_idx].begin, plan[bucket_idx].end}
                                           : plan.shard(bucket_idx, comm.rank());
            for (int64_t i = owned.begin; i < std::min(owned.end, layout.n_elements()); ++i) {
              const Parameter& parameter = layout[layout.at_element(i)];
              const bool padding = i >= parameter.offset + parameter.size();
              const float expected = padding ? 0 : value_of(0, i) + value_of(1, i) + value_of(2, i);
              ASSERT_EQ(reducer->gradients()[static_cast<size_t>(i)], expected) << "bucket " << bucket_idx;
            }
          }
        });
        EXPECT_GE(on_wire, dense);  // of all ranks together: in a tree, leaves send less than others
      }
    }
  }
}

TEST(GradientReducerTest, AnElementThatIsNotFiniteIsFoundOnItsRankOnly) {
  const ParameterLayout layout(small_model());
  const BucketPlan plan(layout, {30'000, 3, 16});
  on_ranks(3, [&](Communicator& comm) {
    auto reducer = GradientReducer::create(comm, plan, {2, true, {}, false});
    ASSERT_TRUE(reducer.ok());
    if (comm.rank() == 1) {
      reducer->gradients()[70'000] = std::numeric_limits<float>::infinity();
      reducer->gradients()[1'234] = std::numeric_limits<float>::quiet_NaN();
    }
    reducer->begin_step({.step = 1, .compress = false});
    Traffic traffic;
    ASSERT_TRUE(reduce(*reducer, layout, traffic).ok());
    ASSERT_EQ(reducer->non_finite().has_value(), comm.rank() == 1);
    const int64_t found = reducer->non_finite().value_or(NonFinite{1'234}).element_idx;
    EXPECT_EQ(found, 1'234) << "not the lowest";
  });
}

TEST(GradientReducerTest, AResidualIsWhatWasNotSentAndRollsBackWithItsStep) {
  const ParameterLayout layout(small_model());
  const CodecSpec codec{CodecId::kTopk, 64};
  const BucketPlan plan(layout, {50'000, 2, 4096});
  ASSERT_TRUE(plan[plan.size() - 1].compressible);
  ASSERT_FALSE(plan[0].compressible);
  on_ranks(2, [&](Communicator& comm) {
    auto reducer = GradientReducer::create(comm, plan, {2, true, codec, true});
    ASSERT_TRUE(reducer.ok());
    Traffic traffic;
    const std::vector<float> zero(reducer->residual().begin(), reducer->residual().end());
    fill(*reducer, layout, comm.rank());
    reducer->begin_step({.step = 1, .compress = true});
    ASSERT_TRUE(reduce(*reducer, layout, traffic).ok());
    EXPECT_LT(traffic.bytes_on_wire, traffic.bytes_dense / 4);
    const std::vector<float> first(reducer->residual().begin(), reducer->residual().end());
    EXPECT_NE(first, zero);

    fill(*reducer, layout, comm.rank());
    reducer->begin_step({.step = 2, .compress = true});
    ASSERT_TRUE(reduce(*reducer, layout, traffic).ok());
    const std::vector<float> second(reducer->residual().begin(), reducer->residual().end());
    EXPECT_NE(second, first);
    reducer->roll_back_residual();
    EXPECT_EQ(std::vector<float>(reducer->residual().begin(), reducer->residual().end()), first);

    reducer->begin_step({.step = 3, .compress = false});  // a dense step neither reads nor changes it
    ASSERT_TRUE(reduce(*reducer, layout, traffic).ok());
    reducer->roll_back_residual();
    EXPECT_EQ(std::vector<float>(reducer->residual().begin(), reducer->residual().end()), first);
  });
}

/// A gradient whose sums are exact, other values for every step, rank and element.
float exact_value(uint32_t step, int rank, size_t i) {
  return static_cast<float>((i * 50 + step * 31 + static_cast<size_t>(rank) * 17) % 129) * 0x1p-6F - 1.0F;
}

/// One rank's steps, of which every third is skipped: what its gradients add up to in the others, less what
/// it received as an owner and its residual.
std::vector<double> unsent(Communicator& comm, const BucketPlan& plan, const ParameterLayout& layout,
                           const CodecSpec& codec) {
  std::vector<double> balance(static_cast<size_t>(plan.n_padded()));
  auto reducer = GradientReducer::create(comm, plan, {2, true, codec, true});
  EXPECT_TRUE(reducer.ok());
  for (uint32_t step = 0; step < 12; ++step) {
    const std::vector<float> before(reducer->residual().begin(), reducer->residual().end());
    for (size_t i = 0; i < balance.size(); ++i) reducer->gradients()[i] = exact_value(step, comm.rank(), i);
    reducer->begin_step({.step = step, .compress = true});
    Traffic traffic;
    EXPECT_TRUE(reduce(*reducer, layout, traffic).ok());
    if (step % 3 == 1) {
      EXPECT_FALSE(std::ranges::equal(reducer->residual(), before)) << to_string(codec) << " step " << step;
      reducer->roll_back_residual();
      EXPECT_TRUE(std::ranges::equal(reducer->residual(), before)) << to_string(codec) << " step " << step;
      continue;
    }
    for (size_t i = 0; i < balance.size(); ++i)
      balance[i] += static_cast<double>(exact_value(step, comm.rank(), i));
    for (int bucket_idx = 0; bucket_idx < plan.size(); ++bucket_idx) {
      const Range owned = plan.shard(bucket_idx, comm.rank());
      for (auto i = static_cast<size_t>(owned.begin); i < static_cast<size_t>(owned.end); ++i)
        balance[i] -= static_cast<double>(reducer->gradients()[i]);
    }
  }
  for (size_t i = 0; i < balance.size(); ++i) balance[i] -= static_cast<double>(reducer->residual()[i]);
  return balance;
}

TEST(GradientReducerTest, WithEveryCodecStepsThatAreSkippedLeaveNothingBehind) {
  LlamaConfig config = small_model();
  config.layers = 1;
  const ParameterLayout layout(config);
  const BucketPlan plan(layout, {50'000, 2, 4096});
  for (const CodecInfo& codec : codecs()) {
    if (codec.residual == ResidualUse::kNone) continue;
    std::vector<std::vector<double>> balances(2);
    on_ranks(2, [&](Communicator& comm) {
      balances[static_cast<size_t>(comm.rank())] = unsent(comm, plan, layout, {.id = codec.id});
    });
    for (size_t i = 0; i < balances[0].size(); ++i)
      ASSERT_EQ(balances[0][i] + balances[1][i], 0) << codec.name << " element " << i;
  }
}

TEST(GradientReducerTest, SaysWhatEachBucketsCodecLost) {
  const ParameterLayout layout(small_model());
  const BucketPlan plan(layout, {50'000, 2, 4096});
  on_ranks(2, [&](Communicator& comm) {
    auto reducer = GradientReducer::create(comm, plan, {2, true, CodecSpec{.id = CodecId::kQ8}, false});
    ASSERT_TRUE(reducer.ok());
    int n_compressible = 0;
    for (const Bucket& bucket : plan.buckets()) n_compressible += bucket.compressible ? 1 : 0;
    ASSERT_GT(n_compressible, 0);
    for (const bool measures : {false, true}) {
      fill(*reducer, layout, comm.rank());
      reducer->begin_step({.step = 1, .compress = true, .measures_error = measures});
      Traffic traffic;
      ASSERT_TRUE(reduce(*reducer, layout, traffic).ok());
      const CodecUse& use = reducer->codec_use();
      EXPECT_EQ(use.n_encoded, n_compressible);
      EXPECT_EQ(use.text(), "q8");
      ASSERT_EQ(use.errors.size(), static_cast<size_t>(plan.size()));
      for (int i = 0; i < plan.size(); ++i) {
        const EncodingError& error = use.errors[static_cast<size_t>(i)];
        const bool is_measured = measures && plan[i].compressible;
        EXPECT_EQ(error.value > 0, is_measured);
        EXPECT_EQ(error.vnmse() > 0, is_measured);
        EXPECT_LT(error.vnmse(), 1e-4);
      }
    }
    reducer->begin_step({.step = 2, .compress = false});
    Traffic traffic;
    ASSERT_TRUE(reduce(*reducer, layout, traffic).ok());
    EXPECT_EQ(reducer->codec_use().text(), "none");
  });
}

TEST(GradientReducerTest, AutoLeavesWhatIsHiddenDense) {
  const ParameterLayout layout(small_model());
  const BucketPlan plan(layout, {50'000, 2, 4096});
  on_ranks(2, [&](Communicator& comm) {
    auto reducer = GradientReducer::create(comm, plan, {2, true, CodecChoice::automatic(), false});
    ASSERT_TRUE(reducer.ok());
    reducer->begin_step({.step = 1, .compress = true, .hidden_seconds = 1e6});
    Traffic traffic;
    ASSERT_TRUE(reduce(*reducer, layout, traffic).ok());
    EXPECT_EQ(reducer->codec_use().n_encoded, 0);
    EXPECT_GT(reducer->overlap_seconds(), 0);
    const CodecCounts counts = comm.codec_counts();
    EXPECT_GT(counts[static_cast<size_t>(CodecReason::kHidden)], 0U);
    EXPECT_EQ(counts[static_cast<size_t>(CodecReason::kPays)], 0U);
  });
}

}  // namespace
}  // namespace tern::trainer
