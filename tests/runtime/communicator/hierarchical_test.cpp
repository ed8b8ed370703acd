// Hierarchical plans over worlds whose ranks say that they are on several hosts.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/ranks.h"

namespace tern {
namespace {

using testing::on_worlds;
using testing::quick_config;

World on_hosts(World world, const std::vector<int>& hosts) {
  for (size_t r = 0; r < hosts.size(); ++r) world.host_ids[r] = fmt::format("host{}", hosts[r]);
  world.host_id = world.host_ids[static_cast<size_t>(world.rank)];
  world.local_size =
      static_cast<int>(std::count(world.host_ids.begin(), world.host_ids.end(), world.host_id));
  return world;
}

constexpr CallOptions kHierarchical{.algorithm = "hierarchical"};

float value(int rank, size_t i) {
  return static_cast<float>((static_cast<size_t>(rank) * 31 + i * 7) % 101);
}
float sum(int n_ranks, size_t i) {
  float all = 0;
  for (int r = 0; r < n_ranks; ++r) all += value(r, i);
  return all;
}
std::vector<float> vector_of(int rank, size_t n, size_t first = 0) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = value(rank, first + i);
  return x;
}

ConstView in(const std::vector<float>& x) {
  return {x.data(), x.size(), Dtype::kFloat32};
}
View out(std::vector<float>& x) {
  return {x.data(), x.size(), Dtype::kFloat32};
}

void expect_sums(Communicator& comm, size_t n) {
  std::vector<float> x = vector_of(comm.rank(), n);
  std::vector<float> y(n, -1);
  const Status apart = comm.all_reduce(in(x), out(y), Op::kSum, kHierarchical);
  ASSERT_TRUE(apart.ok()) << apart.error().to_string();
  const Status in_place = comm.all_reduce(in(x), out(x), Op::kSum, kHierarchical);
  ASSERT_TRUE(in_place.ok()) << in_place.error().to_string();
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], sum(comm.size(), i)) << i;
  EXPECT_EQ(x, y);
  for (int root = 0; root < comm.size(); ++root) {
    const std::vector<float> share = vector_of(comm.rank(), n);
    std::vector<float> total(n, -1);
    const Status status =
        comm.run(ops::with(ops::reduce(in(share), out(total), Op::kSum, root), kHierarchical));
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    if (comm.rank() == root) {
      EXPECT_EQ(total, y) << "root " << root;
    }
  }
}

void expect_broadcasts(Communicator& comm, size_t n) {
  for (int root = 0; root < comm.size(); ++root) {
    std::vector<float> x = vector_of(comm.rank(), n);
    const Status status = comm.broadcast(out(x), root, kHierarchical);
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    EXPECT_EQ(x, vector_of(root, n)) << "root " << root;
  }
}

void expect_shares(Communicator& comm, size_t n) {
  const size_t whole = n * static_cast<size_t>(comm.size());
  const size_t first = n * static_cast<size_t>(comm.rank());
  const std::vector<float> all = vector_of(comm.rank(), whole);
  std::vector<float> own(n, -1);
  const Status scattered = comm.reduce_scatter(in(all), out(own), Op::kSum, kHierarchical);
  ASSERT_TRUE(scattered.ok()) << scattered.error().to_string();
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(own[i], sum(comm.size(), first + i)) << i;
  std::vector<float> gathered(whole, -1);
  const Status status = comm.all_gather(in(own), out(gathered), kHierarchical);
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  for (size_t i = 0; i < whole; ++i) ASSERT_EQ(gathered[i], sum(comm.size(), i)) << i;
}

void expect_exact(const std::vector<int>& hosts, uint64_t segment_bytes) {
  SCOPED_TRACE(fmt::format("hosts [{}], segments of {}", fmt::join(hosts, " "), segment_bytes));
  Config config = quick_config();
  config.segment_bytes = segment_bytes;
  std::vector<int> sizes(hosts.size(), 0);
  for (const int host : hosts) ++sizes[static_cast<size_t>(host)];
  std::erase(sizes, 0);
  const bool are_equal = std::all_of(sizes.begin(), sizes.end(), [&](int n) { return n == sizes[0]; });
  on_worlds(static_cast<int>(hosts.size()), config, [&](const World& world) {
    auto comm = Communicator::create(on_hosts(world, hosts));
    ASSERT_TRUE(comm.ok()) << comm.error().to_string();
    for (const size_t n : {0, 1, 5, 1000}) {
      expect_sums(*comm, n);
      expect_broadcasts(*comm, n);
      if (are_equal) expect_shares(*comm, n);
      EXPECT_TRUE(comm->barrier(kHierarchical).ok());
    }
  });
}

TEST(HierarchicalCollectives, GiveTheExactResultOnHostsOfEqualAndUnequalSizes) {
  const std::vector<std::vector<int>> worlds = {{0, 0, 0, 1, 2, 2},
                                                {0, 1, 0, 1, 0, 1},
                                                {0, 0, 1, 1},
                                                {0, 1, 1, 1, 1},
                                                {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}};
  for (const std::vector<int>& hosts : worlds)
    for (const uint64_t segment_bytes : {0, 256}) expect_exact(hosts, segment_bytes);
}

/// What q8 may lose: half a step for each host's sum, and half a step of the total for encoding that.
double most_loss(int n_ranks, int n_hosts) {
  const double largest = 100.0 * n_ranks;
  return (n_hosts + 1) * info(CodecId::kQ8).max_error({.id = CodecId::kQ8}, largest);
}

void expect_encoded(Communicator& comm, int n_hosts, Op op, size_t n) {
  SCOPED_TRACE(fmt::format("{} of {}", name(op), n));
  const int p = comm.size();
  const double divisor = op == Op::kAvg ? p : 1;
  const CallOptions options{.codec = CodecSpec{.id = CodecId::kQ8}, .algorithm = "hierarchical"};
  const std::vector<float> x = vector_of(comm.rank(), n);
  std::vector<float> y(n, -1);
  const Status status = comm.all_reduce(in(x), out(y), op, options);
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  EXPECT_EQ(comm.last_report().algorithm, "hierarchical");
  for (size_t i = 0; i < n; ++i) ASSERT_NEAR(y[i], sum(p, i) / divisor, most_loss(p, n_hosts) / divisor) << i;
  std::vector<float> least(n), most(n);
  ASSERT_TRUE(comm.all_reduce(in(y), out(least), Op::kMin).ok());
  ASSERT_TRUE(comm.all_reduce(in(y), out(most), Op::kMax).ok());
  EXPECT_EQ(least, most) << "ranks have different results";
}

void expect_encoded_shares(Communicator& comm, int n_hosts, Op op, size_t n) {
  const int p = comm.size();
  const double divisor = op == Op::kAvg ? p : 1;
  const std::vector<float> x = vector_of(comm.rank(), n * static_cast<size_t>(p));
  std::vector<float> y(n, -1);
  const Status status = comm.reduce_scatter(
      in(x), out(y), op, {.codec = CodecSpec{.id = CodecId::kQ8}, .algorithm = "hierarchical"});
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  for (size_t i = 0; i < n; ++i) {
    const size_t at = n * static_cast<size_t>(comm.rank()) + i;
    ASSERT_NEAR(y[i], sum(p, at) / divisor, most_loss(p, n_hosts) / divisor)
        << name(op) << " of " << n << ": " << i;
  }
}

TEST(HierarchicalCollectives, EncodeOnlyBetweenHostsAndQuantiseOncePerLevel) {
  const std::vector<std::vector<int>> worlds = {
      {0, 0, 0, 1, 2, 2}, {0, 1, 0, 1, 0, 1}, {0, 0, 1, 1}, {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}};
  for (const std::vector<int>& hosts : worlds) {
    SCOPED_TRACE(fmt::format("hosts [{}]", fmt::join(hosts, " ")));
    const int n_hosts = *std::max_element(hosts.begin(), hosts.end()) + 1;
    const auto on_first = std::count(hosts.begin(), hosts.end(), 0);
    const bool are_equal = on_first * n_hosts == std::ssize(hosts);
    on_worlds(static_cast<int>(hosts.size()), quick_config(), [&](const World& world) {
      auto comm = Communicator::create(on_hosts(world, hosts));
      ASSERT_TRUE(comm.ok()) << comm.error().to_string();
      for (const Op op : {Op::kSum, Op::kAvg}) {
        for (const size_t n : {0, 1, 1000, 5000}) {
          expect_encoded(*comm, n_hosts, op, n);
          if (are_equal) expect_encoded_shares(*comm, n_hosts, op, n);
        }
      }
    });
  }
}

}  // namespace
}  // namespace tern
