// Every algorithm on every collective, world size, count, element type and operator, in place and out of
// place.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "runtime/plan/registry.h"
#include "tests/ranks.h"
#include "tests/runtime/communicator/cases.h"

namespace tern {
namespace {

using testing::can_run;
using testing::Case;
using testing::on_ranks;
using testing::quick_config;
using testing::run;

// Element types and operators take turns over the cases, so that each algorithm meets each of them at many
// counts.
template <class Visit>
void each_case(int n_ranks, const Visit& visit) {
  const auto p = static_cast<size_t>(n_ranks);
  size_t turn = 0;
  for (const Algorithm& algorithm : algorithms()) {
    for (int c = 0; c < kNumCollectives; ++c) {
      const auto collective = static_cast<Collective>(c);
      if (!can_run(algorithm, collective, n_ranks)) continue;
      for (const size_t n : {size_t{0}, size_t{1}, p - 1, p, p + 1, size_t{1000}}) {
        for (const bool in_place : {false, true}) {
          visit(Case{collective, algorithm.name, n, kDtypes[turn % kDtypes.size()].dtype,
                     static_cast<Op>(turn % kOpNames.size()), in_place, turn % 3 == 0});
          ++turn;
        }
      }
    }
  }
}

void run_all_cases(int n_ranks, const Config& config) {
  on_ranks(n_ranks, config, [&](Communicator& comm) {
    each_case(comm.size(), [&](const Case& c) {
      if (!::testing::Test::HasFatalFailure()) run(comm, c);
    });
  });
}

class CollectivesOfWorld : public ::testing::TestWithParam<int> {};

TEST_P(CollectivesOfWorld, GiveTheExactResultWithEveryAlgorithm) {
  run_all_cases(GetParam(), quick_config());
}

TEST_P(CollectivesOfWorld, GiveTheExactResultWhenCutInSegments) {
  Config config = quick_config();
  config.segment_bytes = 256;
  run_all_cases(GetParam(), config);
}

INSTANTIATE_TEST_SUITE_P(Sizes, CollectivesOfWorld,
                         ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 24,
                                           32));

class CollectivesOverANetwork : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(CollectivesOverANetwork, GiveTheExactResultWithEveryAlgorithm) {
  Config config = quick_config();
  config.transport = std::get<0>(GetParam());
  run_all_cases(std::get<1>(GetParam()), config);
}

INSTANTIATE_TEST_SUITE_P(Sizes, CollectivesOverANetwork,
                         ::testing::Combine(::testing::Values("ucx", "tcp"), ::testing::Values(2, 3, 5)));

class CollectivesOverFaultyLinks : public ::testing::TestWithParam<int> {};

TEST_P(CollectivesOverFaultyLinks, GiveTheExactResultWhenMessagesAreDelayed) {
  Config config = quick_config();
  config.faults = "seed=11,delay=0.2";
  run_all_cases(GetParam(), config);
}

INSTANTIATE_TEST_SUITE_P(Sizes, CollectivesOverFaultyLinks, ::testing::Values(2, 3, 4, 7));

TEST(LargeCollectives, GiveTheExactResultInOneMessageAndInSegments) {
  on_ranks(3, quick_config(), [](Communicator& comm) {
    for (const Algorithm& algorithm : algorithms()) {
      for (int c = 0; c < kNumCollectives; ++c) {
        const auto collective = static_cast<Collective>(c);
        if (!can_run(algorithm, collective, comm.size())) continue;
        for (const bool shared : {false, true}) {
          run(comm, {collective, algorithm.name, 700001, Dtype::kFloat32, Op::kSum, false, shared});
        }
      }
    }
  });
}

}  // namespace
}  // namespace tern
