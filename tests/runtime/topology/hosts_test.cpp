#include "runtime/topology/hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tern {
namespace {

using testing::ElementsAre;

HostPartition partition(std::vector<std::string> host_ids) {
  return partition_by_host(host_ids);
}

TEST(HostPartition, KeepsRanksInOrderAndHostsByTheirLowestRank) {
  const HostPartition p = partition({"z", "a", "z", "a", "m"});
  EXPECT_THAT(p.hosts, ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4)));
  EXPECT_THAT(p.host_of, ElementsAre(0, 1, 0, 1, 2));
  EXPECT_EQ(p.n_hosts(), 3);
  EXPECT_FALSE(p.is_uniform());
}

TEST(HostPartition, IsUniformWhenEveryHostHasAsManyRanks) {
  EXPECT_TRUE(partition({"a", "b", "b", "a"}).is_uniform());
  EXPECT_TRUE(partition({"a"}).is_uniform());
  EXPECT_TRUE(partition({}).is_uniform());
  EXPECT_FALSE(partition({"a", "b", "b"}).is_uniform());
}

}  // namespace
}  // namespace tern
