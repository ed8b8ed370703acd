#include "bench/perf_collective.h"

#include <gtest/gtest.h>

namespace tern::bench {
namespace {

const PerfCollective& row(std::string_view name) {
  return **find_perf_collective(name);
}

TEST(PerfCollective, ShardsAreRoundedDownTo16Bytes) {
  const PerfCollective& all_gather = row("all_gather");
  EXPECT_EQ(count_for(all_gather, 1024, Dtype::kFloat32, 4), 64U);
  EXPECT_EQ(count_for(all_gather, 1000, Dtype::kFloat32, 4), 60U);  // 62.5 elements a shard -> 60
  EXPECT_EQ(bytes_of(all_gather, 60, Dtype::kFloat32, 4), 960U);    // the printed size is the real one
  EXPECT_EQ(count_for(all_gather, 1000, Dtype::kFloat32, 3), 80U);  // 83 -> 80
  EXPECT_EQ(count_for(row("reduce_scatter"), 1000, Dtype::kUint8, 3), 320U);   // 333 -> 320
  EXPECT_EQ(count_for(row("reduce_scatter"), 1000, Dtype::kFloat64, 3), 40U);  // 41 -> 40
  EXPECT_EQ(count_for(all_gather, 8, Dtype::kFloat32, 2), 0U);
}

TEST(PerfCollective, WholeVectorsAreNotRounded) {
  EXPECT_EQ(count_for(row("all_reduce"), 1003, Dtype::kFloat32, 4), 250U);
  EXPECT_EQ(bytes_of(row("all_reduce"), 250, Dtype::kFloat32, 4), 1000U);
  EXPECT_EQ(count_for(row("broadcast"), 7, Dtype::kFloat16, 4), 3U);
}

TEST(PerfCollective, BusFactorsAreNcclTests) {
  for (const int n : {1, 2, 4, 1000}) {
    EXPECT_DOUBLE_EQ(row("all_reduce").bus_factor(n), 2.0 * (n - 1) / n);
    EXPECT_DOUBLE_EQ(row("reduce_scatter").bus_factor(n), (n - 1.0) / n);
    EXPECT_DOUBLE_EQ(row("all_gather").bus_factor(n), (n - 1.0) / n);
    for (const std::string_view shards : {"alltoall", "alltoallv", "gather", "scatter"})
      EXPECT_DOUBLE_EQ(row(shards).bus_factor(n), (n - 1.0) / n) << shards;
    for (const std::string_view once : {"broadcast", "reduce", "sendrecv"})
      EXPECT_DOUBLE_EQ(row(once).bus_factor(n), 1) << once;
  }
}

TEST(PerfCollective, OriginsCoverTheReceivedElements) {
  for (const PerfCollective& collective : perf_collectives()) {
    for (int rank = 0; rank < 5; ++rank) {
      const PerfShape shape = {.count = 48, .rank = rank, .n_ranks = 5, .root = 2};
      size_t n = 0;
      for (const Origin& origin : collective.origins(shape)) n += origin.n;
      EXPECT_EQ(n, collective.n_recv(shape)) << collective.name << " rank " << rank;
      const size_t whole = bytes_of(collective, shape.count, Dtype::kUint8, shape.n_ranks);
      EXPECT_LE(collective.send_offset(shape) + collective.n_send(shape), whole) << collective.name;
      EXPECT_LE(collective.recv_offset(shape) + collective.n_recv(shape), whole) << collective.name;
    }
  }
}

TEST(PerfCollective, UnknownNamesListTheKnownOnes) {
  const auto found = find_perf_collective("all_educe");
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().message.find("all_reduce, reduce_scatter, all_gather, broadcast"),
            std::string::npos);
}

}  // namespace
}  // namespace tern::bench
