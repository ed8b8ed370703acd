// Random operations one after the other on one communicator: what a case leaves behind meets the next one.
//
// The suite runs ten thousand; `ninja soak` a million (TERN_SOAK_OPERATIONS says how many, TERN_SOAK_SEED
// with which seed).
#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/base/philox.h"
#include "tests/ranks.h"
#include "tests/runtime/communicator/cases.h"

namespace tern {
namespace {

using testing::can_run;
using testing::Case;
using testing::on_ranks;
using testing::quick_config;

uint64_t number(const char* variable, uint64_t otherwise) {
  const auto text = environment(variable);
  return text ? std::strtoull(text->c_str(), nullptr, 10) : otherwise;
}

template <class T>
const T& pick(Philox& random, std::span<const T> from) {
  return from[random.below(from.size())];
}

size_t random_count(Philox& random) {
  constexpr size_t kPrimes[] = {2, 3, 31, 127, 1009, 4099};
  switch (random.below(8)) {
    case 0:
      return 0;
    case 1:
      return 1;
    case 2:
    case 3:
      return pick<size_t>(random, kPrimes);
    case 4:
      return random.below(20000);
    default:
      return random.below(300);
  }
}

CodecSpec random_codec(Philox& random) {
  constexpr CodecId kUnbiased[] = {CodecId::kBf16, CodecId::kQ8};
  return {.id = pick<CodecId>(random, kUnbiased)};
}

// The same on every rank, as all draw from the same numbers.
Case random_case(Philox& random, int n_ranks) {
  while (true) {
    Case c{.collective = static_cast<Collective>(random.below(kNumCollectives)),
           .algorithm = "",
           .n = random_count(random),
           .dtype = pick<DtypeInfo>(random, kDtypes).dtype,
           .op = static_cast<Op>(random.below(kOpNames.size())),
           .in_place = random.below(2) == 0,
           .shared = random.below(2) == 0,
           .skew = static_cast<int>(random.below(4))};
    const Algorithm& algorithm = pick(random, algorithms());
    const bool is_named = random.below(3) != 0;  // else as the planner chooses
    if (is_named && !can_run(algorithm, c.collective, n_ranks)) continue;
    if (is_named) c.algorithm = algorithm.name;
    const bool can_encode =
        (c.collective == Collective::kAllReduce || c.collective == Collective::kReduceScatter) &&
        c.dtype == Dtype::kFloat32 && c.op == Op::kSum && (!is_named || algorithm.can_encode());
    if (can_encode && random.below(2) == 0) c.codec = random_codec(random);
    return c;
  }
}

struct World {
  int n_ranks;
  Config config;
};

World random_world(Philox& random) {
  Config config = quick_config();
  constexpr size_t kSegments[] = {0, 0, 256, 4096};
  config.segment_bytes = pick<size_t>(random, kSegments);
  const auto n_ranks = static_cast<int>(1 + random.below(random.below(4) == 0 ? 16 : 6));
  const uint64_t kind = random.below(8);
  if (kind == 0) config.faults = "seed=5,delay=0.05";
  // More than five workers of UCX in one process only take turns.
  if (kind == 1) config.transport = "ucx";
  return {kind == 1 ? 1 + n_ranks % 5 : n_ranks, config};
}

class Soak : public ::testing::TestWithParam<int> {};

TEST_P(Soak, RandomOperationsGiveExactResults) {
  const uint64_t seed = number("TERN_SOAK_SEED", 20260101) + static_cast<uint64_t>(GetParam());
  const uint64_t n_operations = number("TERN_SOAK_OPERATIONS", 10000) / 4;
  constexpr uint64_t kPerWorld = 100;
  fmt::print("seed {}\n", seed);
  Philox worlds(seed);
  for (uint64_t done = 0; done < n_operations && !HasFailure(); done += kPerWorld) {
    const World world = random_world(worlds);
    const uint64_t cases = worlds.next();
    on_ranks(world.n_ranks, world.config, [&](Communicator& comm) {
      Philox random(cases);
      for (uint64_t i = 0; i < kPerWorld && !HasFailure(); ++i) {
        const Case c = random_case(random, comm.size());
        SCOPED_TRACE(fmt::format("seed {} operation {}", seed, done + i));
        testing::run(comm, c);
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, Soak, ::testing::Range(0, 4));

}  // namespace
}  // namespace tern
