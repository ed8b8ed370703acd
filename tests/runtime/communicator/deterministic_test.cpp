// TERN_DETERMINISTIC: the same bits whatever the algorithm could be, the segments, the transport and the
// hosts.
#include <gtest/gtest.h>

#include "runtime/base/philox.h"
#include "tests/ranks.h"

namespace tern {
namespace {

using testing::on_ranks;
using testing::quick_config;

constexpr int kRanks = 5;
constexpr size_t kCount = 4099;

std::vector<float> input_of(int rank) {
  Philox random(static_cast<uint64_t>(rank) + 3);
  std::vector<float> x(kCount);
  for (float& v : x) v = static_cast<float>(static_cast<int32_t>(random.next())) * 0x1p-20F;
  return x;
}

// The definition: one addition after the other, in rank order.
std::vector<float> in_rank_order() {
  std::vector<float> sum = input_of(0);
  for (int r = 1; r < kRanks; ++r) {
    const std::vector<float> x = input_of(r);
    for (size_t i = 0; i < kCount; ++i) sum[i] += x[i];
  }
  return sum;
}

void expect_rank_order(const Config& config) {
  const std::vector<float> want = in_rank_order();
  on_ranks(kRanks, config, [&](Communicator& comm) {
    std::vector<float> x = input_of(comm.rank());
    ASSERT_TRUE(comm.all_reduce(std::span<const float>(x), std::span<float>(x), Op::kSum).ok());
    EXPECT_EQ(x, want) << comm.last_report().algorithm;
    // Any part of it alone gives the same bits: the result does not depend on the size.
    std::vector<float> part = input_of(comm.rank());
    part.resize(17);
    ASSERT_TRUE(comm.all_reduce(std::span<const float>(part), std::span<float>(part), Op::kSum).ok());
    EXPECT_EQ(part, std::vector<float>(want.begin(), want.begin() + 17));
    std::vector<float> at_root(kCount);
    const std::vector<float> own = input_of(comm.rank());
    ASSERT_TRUE(comm.reduce(std::span<const float>(own), std::span<float>(at_root), Op::kSum, 2).ok());
    if (comm.rank() == 2) {
      EXPECT_EQ(at_root, want) << comm.last_report().algorithm;
    }
  });
}

TEST(Deterministic, SumsAreTakenInRankOrder) {
  Config config = quick_config();
  config.deterministic = 1;
  expect_rank_order(config);
  config.segment_bytes = 512;
  expect_rank_order(config);
  config.transport = "ucx";
  expect_rank_order(config);
}

TEST(Deterministic, AnAlgorithmThatSumsInAnotherOrderIsRefused) {
  Config config = quick_config();
  config.deterministic = 1;
  on_ranks(3, config, [](Communicator& comm) {
    float x = 1;
    const Status status = comm.all_reduce(std::span<const float>(&x, 1), std::span<float>(&x, 1), Op::kSum,
                                          {.algorithm = "ring"});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kUnsupported);
    EXPECT_NE(status.error().message.find("rank order"), std::string::npos) << status.error().message;
    EXPECT_TRUE(comm.barrier({.algorithm = "dissemination"}).ok()) << "what sums nothing may be anything";
  });
}

}  // namespace
}  // namespace tern
