// Collectives with a count for each rank, zeros among them.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/ranks.h"

namespace tern {
namespace {

using testing::on_ranks;
using testing::quick_config;

std::vector<size_t> counts_of(int n_ranks, size_t unit) {
  std::vector<size_t> counts;
  for (int r = 0; r < n_ranks; ++r) counts.push_back(static_cast<size_t>(r * 5 + 3) % 7 * unit);
  return counts;
}

int value(size_t i) {
  return static_cast<int>(i * 31 % 1009);
}

struct Uneven {
  Uneven(const Communicator& comm, size_t unit)
      : counts(counts_of(comm.size(), unit)),
        total(std::accumulate(counts.begin(), counts.end(), size_t{0})),
        first(std::accumulate(counts.begin(), counts.begin() + comm.rank(), size_t{0})),
        own(counts[static_cast<size_t>(comm.rank())]),
        whole(total) {}
  void fill_own() {
    for (size_t i = 0; i < own.size(); ++i) own[i] = value(first + i);
  }
  void fill_whole(int factor) {
    for (size_t i = 0; i < total; ++i) whole[i] = factor * value(i);
  }
  void expect_whole(std::string_view what) const {
    for (size_t i = 0; i < total; ++i) ASSERT_EQ(whole[i], value(i)) << what << " element " << i;
  }
  void expect_own(std::string_view what, int factor) const {
    for (size_t i = 0; i < own.size(); ++i)
      ASSERT_EQ(own[i], factor * value(first + i)) << what << " element " << i;
  }

  std::vector<size_t> counts;
  size_t total, first;
  std::vector<int> own, whole;
};

void run_every_form(Communicator& comm, size_t unit) {
  const std::string what = fmt::format("p={} unit={} rank {}", comm.size(), unit, comm.rank());
  {
    Uneven u(comm, unit);
    u.fill_own();
    const Status status = comm.all_gather_v(std::span<const int>(u.own), std::span<int>(u.whole), u.counts);
    ASSERT_TRUE(status.ok()) << what << ": " << status.error().to_string();
    u.expect_whole("all_gather_v " + what);
  }
  {
    Uneven u(comm, unit);
    u.fill_whole(comm.rank() + 1);
    ASSERT_TRUE(
        comm.reduce_scatter_v(std::span<const int>(u.whole), std::span<int>(u.own), u.counts, Op::kSum).ok());
    u.expect_own("reduce_scatter_v " + what, comm.size() * (comm.size() + 1) / 2);
  }
  const int root = comm.size() - 1;
  {
    Uneven u(comm, unit);
    u.fill_own();
    const View out = comm.rank() == root ? View(std::span<int>(u.whole)) : View();
    ASSERT_TRUE(comm.gather_v(std::span<const int>(u.own), out, u.counts, root).ok());
    if (comm.rank() == root) u.expect_whole("gather_v " + what);
  }
  {
    Uneven u(comm, unit);
    if (comm.rank() == root) u.fill_whole(1);
    ASSERT_TRUE(comm.scatter_v(std::span<const int>(u.whole), std::span<int>(u.own), u.counts, root).ok());
    u.expect_own("scatter_v " + what, 1);
  }
}

// Rank i sends (i + 2j) % 5 units to j, from parts that lie in reverse order.
void run_all_to_all_v(Communicator& comm, size_t unit) {
  const auto count = [&](int from, int to) { return static_cast<size_t>(from + 2 * to) % 5 * unit; };
  const int p = comm.size();
  const auto ranks = static_cast<size_t>(p);
  std::vector<size_t> to(ranks), from(ranks), to_at(ranks), from_at(ranks);
  size_t n_in = 0;
  size_t n_out = 0;
  for (int r = p - 1; r >= 0; --r) {
    const auto i = static_cast<size_t>(r);
    to[i] = count(comm.rank(), r);
    from[i] = count(r, comm.rank());
    to_at[i] = n_in;
    from_at[i] = n_out;
    n_in += to[i];
    n_out += from[i];
  }
  std::vector<int> in(n_in), out(n_out, -1);
  for (size_t r = 0; r < ranks; ++r)
    for (size_t i = 0; i < to[r]; ++i)
      in[to_at[r] + i] = value(i) + 2000 * comm.rank() + 7 * static_cast<int>(r);
  const Status status =
      comm.all_to_all_v(std::span<const int>(in), {to, to_at}, std::span<int>(out), {from, from_at});
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  for (size_t r = 0; r < ranks; ++r)
    for (size_t i = 0; i < from[r]; ++i)
      ASSERT_EQ(out[from_at[r] + i], value(i) + 2000 * static_cast<int>(r) + 7 * comm.rank())
          << "p=" << p << " from " << r << " element " << i;
}

class UnevenCollectives : public ::testing::TestWithParam<int> {};

TEST_P(UnevenCollectives, GiveEachRankItsOwnCount) {
  on_ranks(GetParam(), quick_config(), [](Communicator& comm) {
    for (const size_t unit : {0, 1, 13, 5000}) {
      run_every_form(comm, unit);
      run_all_to_all_v(comm, unit);
    }
  });
}

TEST_P(UnevenCollectives, GiveEachRankItsOwnCountOverNetworksInSegments) {
  for (const char* transport : {"ucx", "tcp"}) {
    SCOPED_TRACE(transport);
    Config config = quick_config();
    config.transport = transport;
    config.segment_bytes = 4096;
    on_ranks(std::min(GetParam(), 5), config, [](Communicator& comm) {
      for (const size_t unit : {1, 5000}) {
        run_every_form(comm, unit);
        run_all_to_all_v(comm, unit);
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, UnevenCollectives, ::testing::Values(1, 2, 3, 4, 7, 16));

TEST(UnevenCounts, ThatDifferBetweenRanksAreAMismatch) {
  on_ranks(3, quick_config(), [](Communicator& comm) {
    std::vector<size_t> counts = {1, 2, 3};
    if (comm.rank() == 1) counts = {2, 2, 2};
    std::vector<int> own(counts[static_cast<size_t>(comm.rank())]), whole(6);
    Status status = comm.all_gather_v(std::span<const int>(own), std::span<int>(whole), counts);
    if (status.ok()) status = comm.barrier();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kMismatch) << status.error().to_string();
  });
}

TEST(UnevenCounts, ThatDoNotFitAreRefusedBeforeAnythingIsSent) {
  on_ranks(2, quick_config(), [](Communicator& comm) {
    std::vector<int> own(2), whole(4);
    const auto refused = [&](std::vector<size_t> counts, std::string_view why) {
      const Status status = comm.all_gather_v(std::span<const int>(own), std::span<int>(whole), counts);
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().code, Code::kInvalidArgument);
      EXPECT_NE(status.error().message.find(why), std::string::npos) << status.error().message;
    };
    refused({2}, "one for each of the 2 ranks");
    refused({3, 3}, "count of rank");
    refused({2, 2, 2}, "one for each of the 2 ranks");
    refused({SIZE_MAX, SIZE_MAX}, "overflow");
    const std::vector<size_t> two = {2, 2}, outside = {0, 3};
    const Status status =
        comm.all_to_all_v(std::span<const int>(whole), {two, outside}, std::span<int>(own), {two, {}});
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("input part of rank 1, elements 3 to 5, is outside of 4"),
              std::string::npos)
        << status.error().message;
    EXPECT_TRUE(comm.barrier().ok());
  });
}

}  // namespace
}  // namespace tern
