// Results are the same bytes on every rank and from run to run, on data whose sum depends on the order of
// additions.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "runtime/plan/registry.h"
#include "tests/ranks.h"

namespace tern {
namespace {

using testing::on_ranks;
using testing::quick_config;

std::vector<float> noise(int rank, size_t n) {
  std::mt19937 random(static_cast<uint32_t>(rank) + 77);
  std::lognormal_distribution<float> wide(0, 4);
  std::vector<float> x(n);
  for (float& v : x) v = wide(random) * (random() % 2 == 0 ? 1.0F : -1.0F);
  return x;
}

std::vector<std::vector<float>> all_reduce_on(int n_ranks, size_t n, std::string_view algorithm,
                                              const Config& config) {
  std::vector<std::vector<float>> outs(static_cast<size_t>(n_ranks));
  on_ranks(n_ranks, config, [&](Communicator& comm) {
    auto x = noise(comm.rank(), n);
    const Status status =
        comm.all_reduce(std::span<const float>(x), std::span<float>(x), Op::kSum, {.algorithm = algorithm});
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    outs[static_cast<size_t>(comm.rank())] = std::move(x);
  });
  return outs;
}

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Results, AreIdenticalToTheBitOnAllRanksAndFromRunToRun) {
  for (const int n_ranks : {2, 3, 4, 7, 8}) {
    for (const Algorithm& algorithm : algorithms()) {
      if (!algorithm.supports({.collective = Collective::kAllReduce, .n_ranks = n_ranks})) continue;
      for (const size_t n : {1, 5, 1009, 70001}) {
        const auto first = all_reduce_on(n_ranks, n, algorithm.name, quick_config());
        const auto second = all_reduce_on(n_ranks, n, algorithm.name, quick_config());
        for (const auto& out : first) {
          ASSERT_TRUE(same_bytes(out, first[0])) << algorithm.name << " p=" << n_ranks << " n=" << n;
        }
        ASSERT_TRUE(same_bytes(first[0], second[0])) << algorithm.name << " p=" << n_ranks << " n=" << n;
      }
    }
  }
}

TEST(Results, OfDirectAlgorithmsAreTheSumInRankOrderHoweverTheyAreCut) {
  constexpr int kRanks = 5;
  constexpr size_t kN = 20011;
  std::vector<float> sum = noise(0, kN);
  for (int rank = 1; rank < kRanks; ++rank) {
    const auto x = noise(rank, kN);
    for (size_t i = 0; i < kN; ++i) sum[i] += x[i];
  }
  for (const std::string_view algorithm : {"direct", "one_shot"}) {
    for (const size_t segment : {0, 1024, 9999}) {
      Config config = quick_config();
      config.segment_bytes = segment;
      EXPECT_TRUE(same_bytes(all_reduce_on(kRanks, kN, algorithm, config)[3], sum))
          << algorithm << " segment " << segment;
    }
  }
}

}  // namespace
}  // namespace tern
