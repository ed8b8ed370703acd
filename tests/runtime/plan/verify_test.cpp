#include "runtime/plan/verify.h"

#include <gtest/gtest.h>

#include "tests/runtime/plan/worlds.h"

namespace tern {
namespace {

void expect_proven(const Algorithm& algorithm, const TestWorld& world) {
  SCOPED_TRACE(label(algorithm, world));
  const Status status = verify(plans_of(algorithm, world), {.rank_order = algorithm.rank_order});
  EXPECT_TRUE(status.ok()) << status.error().to_string();
}

// Every collective of one algorithm.
class Proven : public ::testing::TestWithParam<std::string_view> {
 protected:
  template <class Visit>
  static void each_collective(TestWorld world, Visit visit) {
    const Algorithm& algorithm = *find_algorithm(GetParam()).value();
    for (int c = 0; c < kNumCollectives; ++c) {
      world.collective = static_cast<Collective>(c);
      if (supports(algorithm, world)) visit(algorithm, world);
    }
  }
};

/// The world, with uneven counts, and where plans are made for that, in place on all and on some ranks.
std::vector<TestWorld> variants(TestWorld world) {
  std::vector<TestWorld> all;
  const bool knows_place =
      world.collective == Collective::kAllToAll || world.collective == Collective::kSendRecv;
  for (const bool uneven : {false, true})
    for (const InPlace in_place : {InPlace::kNone, InPlace::kAll, InPlace::kSome}) {
      if (in_place != InPlace::kNone && !knows_place) continue;
      if (uneven && !owners_fixed(world.collective)) continue;
      world.uneven = uneven;
      world.in_place = in_place;
      all.push_back(world);
    }
  return all;
}

std::vector<int> some_roots(const TestWorld& world) {
  const int p = world.n_ranks;
  if (!has_root(world.collective)) return {0};
  if (p > 17) return {0, p / 3, p - 1};
  std::vector<int> roots;
  for (int r = 0; r < p; ++r) roots.push_back(r);
  return roots;
}

TEST_P(Proven, ForEveryRankCountUpTo64AndEveryRootUpTo17) {
  for (int p = 1; p <= 64; ++p)
    each_collective({.n_ranks = p}, [](const Algorithm& algorithm, const TestWorld& world) {
      for (TestWorld variant : variants(world)) {
        if (!supports(algorithm, variant)) continue;
        for (const int root : some_roots(world)) {
          variant.root = root;
          expect_proven(algorithm, variant);
        }
      }
    });
}

TEST_P(Proven, ForManyRanks) {
  for (const int p : {127, 128, 129, 1000, 1024})
    each_collective({.n_ranks = p}, [p](const Algorithm& algorithm, TestWorld world) {
      if (has_root(world.collective)) world.root = p / 3;
      world.in_place = InPlace::kSome;
      expect_proven(algorithm, world);
    });
}

TEST_P(Proven, ForHostsOfEqualAndUnequalSizes) {
  for (const std::vector<int>& hosts : kHosts)
    each_collective({.n_ranks = static_cast<int>(hosts.size()), .hosts = hosts},
                    [](const Algorithm& algorithm, TestWorld world) {
                      for (const int root : some_roots(world)) {
                        world.root = root;
                        expect_proven(algorithm, world);
                      }
                    });
}

std::vector<std::string_view> algorithm_names() {
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : algorithms()) names.push_back(algorithm.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Proven, ::testing::ValuesIn(algorithm_names()),
                         [](const auto& row) { return std::string(row.param); });

}  // namespace
}  // namespace tern
